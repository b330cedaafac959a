#include "ranklog/schema/salvage.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <system_error>
#include <utility>

#include "file.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/file_copy.hpp"
#include "ranklog/schema/rank_database.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;

// A name of the copy's own until it is published; nothing of that name is left behind.
class TemporaryName {
 public:
  explicit TemporaryName(const fs::path& target)
      : path_(target.string() + "." + std::to_string(::getpid()) + ".new") {}
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName() {
    std::error_code ignored;
    for (const char* suffix : {"", "-journal", "-wal", "-shm"}) fs::remove(path_.string() + suffix, ignored);
  }
  [[nodiscard]] const fs::path& path() const noexcept { return path_; }

 private:
  fs::path path_;
};

// Without a WAL, whose rows would have to come back into the file before it can be published: a full disk may
// refuse just that.
Durability without_wal() {
  Durability durability;
  durability.journal = JournalMode::kDelete;
  return durability;
}

// A database that is filled under a name of its own, and removed unless it is published.
class NewFile {
 public:
  NewFile(fs::path target, const FileInfo& info)
      : target_(std::move(target)),
        name_(target_),
        database_(RankDatabase::create(name_.path(), info.identity, info.start_time_ns, without_wal())) {}

  RankDatabase& database() { return *database_; }
  // The copy as it will be read.
  [[nodiscard]] RankFile close() {
    database_.reset();
    return RankFile::open(name_.path());
  }
  void publish() {
    put_in_place();
    sync_folder(target_.parent_path());
  }

 private:
  void put_in_place() {
    const int error = publish_exclusively(name_.path(), target_);
    if (error == EEXIST) {
      throw Error(ErrorCode::kBusy, "'" + target_.string() + "' exists already and is left as it is");
    }
    if (error != 0) {
      throw Error(ErrorCode::kIo, "cannot create '" + target_.string() + "': " + errno_text(error));
    }
  }

  fs::path target_;
  TemporaryName name_;
  std::optional<RankDatabase> database_;  // closed before its files go
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

// Chunks of one stream, many in one transaction: each of them waits for the disk.
class GroupCopier {
 public:
  GroupCopier(const RankFile& file, RankDatabase& database, std::uint64_t watermark)
      : file_(file), database_(database), watermark_(watermark) {}

  // How many rows there were.
  std::uint64_t copy(Stream stream) {
    std::uint64_t rows = 0;
    for (std::size_t i = 0; i < file_.row_groups(stream).size(); ++i) {
      try {
        add(file_.load(i, stream), file_.row_groups(stream)[i].stored_bytes);
        rows += chunks_.back().info.rows;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kDamaged) throw;  // the file lists the damage itself
      }
      if (chunks_.size() >= kMostChunks || bytes_ >= kMostBytes) commit();
    }
    commit();
    return rows;
  }

 private:
  static constexpr std::size_t kMostChunks = 16;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 20;

  void add(const RowGroup& group, std::uint64_t bytes) {
    chunks_.push_back(database_.encode(group));
    watermark_ = std::max(watermark_, chunks_.back().info.last_sequence);
    bytes_ += bytes;
  }
  void commit() {
    SealBatch batch = batch_of(file_.info());
    batch.chunks = std::exchange(chunks_, {});
    batch.watermark = watermark_;
    bytes_ = 0;
    if (!batch.chunks.empty()) database_.commit(batch);
  }

  const RankFile& file_;
  RankDatabase& database_;
  std::uint64_t watermark_;
  std::vector<EncodedChunk> chunks_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Salvage copy_rank_file(const fs::path& source, const fs::path& target) {
  const RankFile file = RankFile::open(source);
  const FileInfo& info = file.info();
  NewFile copy(target, info);
  Salvage salvage;
  SealBatch records = records_of(file);
  copy.database().commit(records);
  GroupCopier groups(file, copy.database(), records.watermark);
  for (const Stream stream : kStreams) {
    const std::uint64_t rows = groups.copy(stream);
    if (stream == Stream::kHistory) salvage.rows = rows;
  }
  if (info.end_state) {
    copy.database().finish(*info.end_state, info.exit_code, info.end_time_ns.value_or(info.heartbeat_ns),
                           info.active_ns);
  } else {
    copy.database().leave_open();
  }
  salvage.rows_missing = info.rows - std::min(info.rows, salvage.rows);
  salvage.damage = file.damage();
  std::ranges::set_difference(file.contents(), copy.close().contents(), std::back_inserter(salvage.left_out));
  copy.publish();
  return salvage;
}

}  // namespace ranklog
