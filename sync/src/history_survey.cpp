#include "conflict.hpp"
#include "history_upload.hpp"
#include "ranklog/schema/digest.hpp"

namespace ranklog::sync {
namespace {

[[noreturn]] void refuse_prefix(const std::string& run_id, std::uint64_t first, std::uint64_t lines) {
  throw ConflictError("run " + run_id + ": the files no longer begin with what was uploaded (history lines " +
                      std::to_string(first) + " to " + std::to_string(first + lines - 1) +
                      " differ); a rank file was added, removed or continued from an earlier step");
}

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
    refuse_prefix(run_id_, record.first_line, record.lines);
  }

  const std::vector<BatchRecord>& recorded_;
  const std::string& run_id_;
  std::size_t at_ = 0;
  Batch batch_;
  bool open_matches_ = false;
};

// SHA-256 of lines as they come by.
class LineDigest {
 public:
  void add(std::string_view line) {
    ++lines_;
    pending_ += line;
    pending_.push_back('\n');
    if (pending_.size() >= kFlushBytes) flush();
  }
  [[nodiscard]] HistoryClaim finish() {  // once
    flush();
    return {lines_, digest_.finish().sha256};
  }

 private:
  static constexpr std::size_t kFlushBytes = std::size_t{64} << 10;

  void flush() {
    digest_.update(pending_.data(), pending_.size());
    pending_.clear();
  }

  DigestStream digest_;
  std::string pending_;
  std::uint64_t lines_ = 0;
};

// Whether the lines begin with those that a run's config claims.
class ClaimCheck {
 public:
  explicit ClaimCheck(std::optional<HistoryClaim> claim) : claim_(std::move(claim)) {}

  void take(std::string_view line) {
    if (!claim_ || taken_ == claim_->lines) return;
    digest_.add(line);
    if (++taken_ == claim_->lines) holds_ = digest_.finish().sha256 == claim_->sha256;
  }
  // Throws unless the first `lines` lines are known to be those at the server.
  void check(std::uint64_t lines, const std::string& run_id) const {
    if (lines > 0 && (!claim_ || !holds_ || lines > claim_->lines)) refuse_prefix(run_id, 0, lines);
  }

 private:
  std::optional<HistoryClaim> claim_;
  LineDigest digest_;
  std::uint64_t taken_ = 0;
  bool holds_ = false;
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

HistorySurvey survey_history(RunMerge& merge, const HistoryKnown& known, const std::string& run_id,
                             const StopFlag& stop) {
  HistorySurvey survey;
  PrefixCheck prefix(known.recorded, run_id);
  ClaimCheck claim(known.claim);
  Adoption adoption(known.adopt_lines);
  LineDigest digest;
  RequestCount requests;
  std::string line;
  while (merge.next(line)) {
    throw_if_stopped(stop);
    if (known.left_out.contains(merge.step())) {
      survey.left_out_steps.push_back(merge.step());
      continue;
    }
    if (line.size() > kMaxLineBytes) {
      survey.overlong_steps.push_back(merge.step());
      continue;
    }
    survey.bytes += line.size() + 1;
    digest.add(line);
    claim.take(line);
    if (!prefix.take(line) && !adoption.take(line, survey.adopted)) requests.take(line.size());
  }
  prefix.finish();
  claim.check(known.adopt_lines, run_id);
  survey.claim = digest.finish();
  survey.lines = survey.claim.lines;
  survey.open_batch_matches = prefix.open_batch_matches();
  survey.requests = requests.requests();
  survey.summary = merge.summary();
  survey.counts = merge.counts();
  survey.damage = merge.damage();
  survey.metrics = merge.keys().size();
  return survey;
}

std::vector<PlanProblem> survey_faults(const HistorySurvey& survey) {
  std::vector<PlanProblem> faults;
  faults.reserve(survey.damage.size() + survey.overlong_steps.size() + survey.left_out_steps.size());
  for (const Damage& damage : survey.damage) {
    faults.push_back({ErrorCode::kDamaged, "rows are missing: " + damage.place + ": " + damage.reason});
  }
  for (const std::int64_t step : survey.overlong_steps) {
    faults.push_back({ErrorCode::kServer, "step " + std::to_string(step) +
                                              " is left out: its row is longer than the " +
                                              std::to_string(kMaxLineBytes) + " bytes that W&B takes"});
  }
  for (const std::int64_t step : survey.left_out_steps) {
    faults.push_back({ErrorCode::kServer, "step " + std::to_string(step) +
                                              " is left out: the server found its row too large (413)"});
  }
  return faults;
}

std::string unreadable_text(int rank, const HistorySurvey& survey) {
  const Damage& first = survey.damage.front();
  return "no row of rank " + std::to_string(rank) +
         " can be read, so nothing of it is uploaded: " + first.place + ": " + first.reason;
}

}  // namespace ranklog::sync
