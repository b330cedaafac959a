#include "rank_file_builder.hpp"

#include <sqlite3.h>

#include <fstream>
#include <stdexcept>

#include "ranklog/schema/naming.hpp"

namespace ranklog::test {
namespace fs = std::filesystem;

Identity identity_of_rank(int rank, int world_size) {
  Identity identity;
  identity.project = "p";
  identity.experiment = "e";
  identity.rank = rank;
  identity.local_rank = rank;
  identity.world_size = world_size;
  identity.local_world_size = world_size;
  identity.launch_token = "t0";
  identity.host = "a-host";
  identity.pid = 4242;
  identity.pid_start_ticks = 77;
  return identity;
}

void ruin_chunks(const std::filesystem::path& path) {
  sqlite3* connection = nullptr;
  const bool done = sqlite3_open(path.c_str(), &connection) == SQLITE_OK &&
                    sqlite3_exec(connection, "UPDATE chunk SET data = x'00', stats = x'00'", nullptr, nullptr,
                                 nullptr) == SQLITE_OK;
  sqlite3_close(connection);
  if (!done) throw std::runtime_error("cannot damage " + path.string());
}

RankFileBuilder::RankFileBuilder(const fs::path& path, Identity identity, std::int64_t start_time_ns,
                                 const Durability& durability)
    : path_(path), identity_(std::move(identity)), start_time_ns_(start_time_ns) {
  fs::create_directories(path.parent_path());
  database_ = RankDatabase::create(path, identity_, start_time_ns, durability);
}

RankFileBuilder& RankFileBuilder::row(std::int64_t step, const Fields& fields, Stream stream) {
  std::vector<TailField> tail_fields;
  for (const auto& [display, value] : fields) tail_fields.push_back({key_id(display), value});
  ++sequence_;
  std::string record;
  append_row_record(record, sequence_, step, now_ns(), tail_fields, stream);
  append(record);
  rows_.add({sequence_, step, now_ns(), std::move(tail_fields), stream});
  return *this;
}

RankFileBuilder& RankFileBuilder::operation(OperationBody body) {
  ++sequence_;
  operations_.push_back({sequence_, now_ns(), std::move(body)});
  std::string record;
  append_operation_record(record, operations_.back());
  append(record);
  return *this;
}

RankFileBuilder& RankFileBuilder::commit_only() {
  SealBatch batch;
  batch.new_keys = std::exchange(new_keys_, {});
  batch.chunks = database_->encode(rows_.take());
  batch.operations = std::exchange(operations_, {});
  batch.watermark = sequence_;
  batch.now_ns = now_ns();
  batch.active_ns = now_ns() - start_time_ns_;
  database_->commit(batch);
  return *this;
}

RankFileBuilder& RankFileBuilder::seal() {
  commit_only();
  for (; first_segment_ <= segment_; ++first_segment_) fs::remove(segment_path(first_segment_));
  segment_ = first_segment_;
  return *this;
}

RankFileBuilder& RankFileBuilder::merge_small_chunks(std::chrono::steady_clock::time_point deadline) {
  database_->merge_small_chunks(deadline);
  return *this;
}

RankFileBuilder& RankFileBuilder::next_segment() {
  ++segment_;
  return *this;
}

void RankFileBuilder::finish(EndState state, std::optional<int> exit_code) {
  seal();
  database_->finish(state, exit_code, now_ns(), now_ns() - start_time_ns_);
  database_.reset();
}

fs::path RankFileBuilder::segment_path(unsigned index) const {
  return tail_segment_path(path_, index);
}

// A new segment begins with its header and the keys known so far.
void RankFileBuilder::append(std::string_view record) {
  const fs::path path = segment_path(segment_);
  const bool is_new = !fs::exists(path);
  std::ofstream out(path, std::ios::binary | std::ios::app);
  if (is_new) {
    out << encode_tail_header(identity_.launch_token, identity_.rank);
    for (const auto& [display, id] : keys_) {
      std::string key_record;
      append_key_record(key_record, id, KeyPath::parse(display));
      out << key_record;
    }
  }
  out << record;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

KeyId RankFileBuilder::key_id(const std::string& display) {
  if (const auto known = keys_.find(display); known != keys_.end()) return known->second;
  const auto id = static_cast<KeyId>(keys_.size());
  std::string record;
  append_key_record(record, id, KeyPath::parse(display));
  append(record);
  keys_.emplace(display, id);
  new_keys_.push_back(KeyPath::parse(display));
  return id;
}

std::int64_t RankFileBuilder::now_ns() const noexcept {
  return start_time_ns_ + static_cast<std::int64_t>(sequence_) * 1'000'000;
}

}  // namespace ranklog::test
