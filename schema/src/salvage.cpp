#include "ranklog/schema/salvage.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/rank_database.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;

// A database that is filled under a name of its own, and removed unless it is published.
class NewFile {
 public:
  NewFile(fs::path target, const FileInfo& info)
      : target_(std::move(target)),
        path_(target_.string() + "." + std::to_string(::getpid()) + ".new"),
        database_(RankDatabase::create(path_, info.identity, info.start_time_ns)) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    database_.reset();
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

  RankDatabase& database() { return *database_; }
  void publish() {
    database_.reset();  // leaves one file
    // link, and not rename: what is there already must stay.
    if (::link(path_.c_str(), target_.c_str()) == 0) return;
    const int error = errno;
    if (error == EEXIST) {
      throw Error(ErrorCode::kBusy, "'" + target_.string() + "' exists already and is left as it is");
    }
    // File systems without links.
    if (fs::exists(target_) || ::rename(path_.c_str(), target_.c_str()) != 0) {
      throw Error(ErrorCode::kIo, "cannot create '" + target_.string() + "': " + errno_text(error));
    }
  }

 private:
  fs::path target_, path_;
  std::optional<RankDatabase> database_;
};

// What is the same in every batch of the copy.
SealBatch batch_of(const FileInfo& info) {
  SealBatch batch;
  batch.dropped_rows = info.dropped_rows;
  batch.now_ns = info.heartbeat_ns;
  batch.active_ns = info.active_ns;
  batch.durability = info.durability;
  return batch;
}

template <class Bodies>
void add_operations(SealBatch& batch, Bodies&& bodies) {
  for (auto& body : bodies) {
    Operation operation;
    if constexpr (requires { body.sequence; }) {
      operation.sequence = body.sequence;
      operation.time_ns = body.time_ns;
    }
    batch.watermark = std::max(batch.watermark, operation.sequence);
    operation.body = std::move(body);
    batch.operations.push_back(std::move(operation));
  }
}

SealBatch records_of(const RankFile& file) {
  SealBatch batch = batch_of(file.info());
  batch.new_keys = file.keys();
  add_operations(batch, file.config());
  add_operations(batch, file.metric_definitions());
  add_operations(batch, file.summary_overrides());
  add_operations(batch, file.events());
  add_operations(batch, file.artifacts());
  add_operations(batch, file.files());
  return batch;
}

void copy_groups(const RankFile& file, Stream stream, RankDatabase& database, std::uint64_t& watermark,
                 Salvage& salvage) {
  for (std::size_t i = 0; i < file.row_groups(stream).size(); ++i) {
    SealBatch batch = batch_of(file.info());
    try {
      batch.groups.push_back(file.load(i, stream));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDamaged) throw;  // the file lists the damage itself
      continue;
    }
    const RowGroup& group = batch.groups.front();
    for (const std::uint64_t sequence : group.sequence) watermark = std::max(watermark, sequence);
    if (stream == Stream::kHistory) salvage.rows += group.rows();
    batch.watermark = watermark;
    database.commit(batch);
  }
}

}  // namespace

Salvage copy_rank_file(const fs::path& source, const fs::path& target) {
  const RankFile file = RankFile::open(source);
  const FileInfo& info = file.info();
  NewFile copy(target, info);
  Salvage salvage;
  SealBatch records = records_of(file);
  std::uint64_t watermark = records.watermark;
  copy.database().commit(records);
  for (const Stream stream : kStreams) copy_groups(file, stream, copy.database(), watermark, salvage);
  if (info.end_state) {
    copy.database().finish(*info.end_state, info.exit_code, info.end_time_ns.value_or(info.heartbeat_ns),
                           info.active_ns);
  } else {
    copy.database().leave_open();
  }
  salvage.rows_missing = info.rows - std::min(info.rows, salvage.rows);
  salvage.damage = file.damage();
  copy.publish();
  return salvage;
}

}  // namespace ranklog
