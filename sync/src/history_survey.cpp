#include <algorithm>

#include "history_upload.hpp"
#include "ranklog/schema/digest.hpp"

namespace ranklog::sync {
namespace {

// Compares lines with the batches that were recorded for them, as they come by.
class PrefixCheck {
 public:
  PrefixCheck(const std::vector<BatchRecord>& recorded, const std::string& run_id)
      : recorded_(recorded), run_id_(run_id) {}

  // False: the line lies beyond all recorded ones.
  bool take(std::string_view line) {
    if (at_ == recorded_.size()) return false;
    batch_.add(line);
    if (batch_.lines == recorded_[at_].lines) close();
    return true;
  }
  void finish() const {
    if (at_ < recorded_.size() && recorded_[at_].confirmed) refuse(recorded_[at_]);
  }
  [[nodiscard]] bool open_batch_matches() const noexcept { return open_matches_; }

 private:
  void close() {
    const BatchRecord& record = recorded_[at_++];
    const bool same = sha256_hex(batch_.text) == record.sha256;
    if (record.confirmed && !same) refuse(record);
    if (!record.confirmed) open_matches_ = same;
    batch_ = Batch{};
  }
  [[noreturn]] void refuse(const BatchRecord& record) const {
    throw Error(ErrorCode::kServer,
                "run " + run_id_ + ": the files no longer begin with what was uploaded (history lines " +
                    std::to_string(record.first_line) + " to " +
                    std::to_string(record.first_line + record.lines - 1) +
                    " differ); a rank file was added, removed or continued from an earlier step",
                "upload it as a new run with --id");
  }

  const std::vector<BatchRecord>& recorded_;
  const std::string& run_id_;
  std::size_t at_ = 0;
  Batch batch_;
  bool open_matches_ = false;
};

// Turns lines that are at the server without a record of them into batches.
class Adoption {
 public:
  explicit Adoption(std::uint64_t lines) : left_(lines) {}

  bool take(std::string_view line, std::vector<BatchRecord>& out) {
    if (left_ == 0) return false;
    if (!batch_.takes(line.size())) close(out);
    batch_.add(line);
    if (--left_ == 0) close(out);
    return true;
  }
  [[nodiscard]] std::uint64_t left() const noexcept { return left_; }

 private:
  void close(std::vector<BatchRecord>& out) {
    out.push_back({batch_.first_line, batch_.lines, sha256_hex(batch_.text), true});
    const std::uint64_t next = batch_.first_line + batch_.lines;
    batch_ = Batch{};
    batch_.first_line = next;
  }

  std::uint64_t left_;
  Batch batch_;
};

// Counts the requests that new lines take, by the rule by which they are sent.
class RequestCount {
 public:
  void take(std::size_t line_bytes) {
    const std::size_t bytes = line_bytes + 1;
    if (lines_ == 0 || bytes_ + line_bytes > kMaxBatchBytes) {
      ++requests_;
      lines_ = 0;
      bytes_ = 0;
    }
    ++lines_;
    bytes_ += bytes;
  }
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }

 private:
  std::uint64_t requests_ = 0, lines_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

HistorySurvey survey_history(RunMerge& merge, const std::vector<BatchRecord>& recorded,
                             std::uint64_t adopt_lines, const std::string& run_id) {
  HistorySurvey survey;
  PrefixCheck prefix(recorded, run_id);
  Adoption adoption(adopt_lines);
  RequestCount requests;
  for (const BatchRecord& batch : recorded) survey.recorded_lines += batch.lines;
  std::string line;
  while (merge.next(line)) {
    if (line.size() > kMaxLineBytes) {
      survey.overlong_steps.push_back(merge.step());
      continue;
    }
    ++survey.lines;
    survey.bytes += line.size() + 1;
    if (!prefix.take(line) && !adoption.take(line, survey.adopted)) requests.take(line.size());
  }
  prefix.finish();
  if (adoption.left() > 0) {
    throw Error(ErrorCode::kServer,
                "run " + run_id + ": the server has " + std::to_string(adopt_lines) +
                    " history lines and the files make only " + std::to_string(survey.lines),
                "upload it as a new run with --id");
  }
  survey.open_batch_matches = prefix.open_batch_matches();
  survey.requests = requests.requests();
  survey.summary = merge.summary();
  survey.counts = merge.counts();
  survey.damage = merge.damage();
  survey.metrics = merge.keys().size();
  return survey;
}

}  // namespace ranklog::sync
