#include "history_upload.hpp"

#include "conflict.hpp"
#include "ranklog/schema/digest.hpp"

namespace ranklog::sync {
namespace {

using std::chrono::milliseconds;

// The server's counts may lag behind what it has accepted.
constexpr int kLagQuestions = 4;
constexpr milliseconds kLagWait{2'000};

[[noreturn]] void disagree(const std::string& run_id, std::uint64_t server, std::uint64_t begin,
                           std::uint64_t end) {
  const std::string ours =
      begin == end ? std::to_string(end) : std::to_string(begin) + " or " + std::to_string(end);
  throw ConflictError("run " + run_id + ": the server has " + std::to_string(server) +
                      " history lines where " + ours +
                      " were expected, so somebody else has written to the run or lines were lost");
}

// The server's count once it is one of the two that can be explained. `in_doubt`: a batch may have landed; a
// count that has not moved proves nothing until it has stayed for as long as counts may lag.
std::uint64_t settled_count(const HistoryTarget& target, std::uint64_t count, std::uint64_t begin,
                            std::uint64_t end, bool in_doubt) {
  if (in_doubt || count != begin) count = patient_count(target.http, target.ask_line_count, count, end);
  if (count != begin && count != end) disagree(target.stream.run().run_id, count, begin, end);
  return count;
}

BatchRecord record_of(const Batch& batch, bool confirmed) {
  return {batch.first_line, batch.lines, sha256_hex(batch.text), confirmed};
}

// Lines on their way, and the steps that they are of.
struct Parcel {
  Batch batch;
  std::vector<std::int64_t> steps;

  void add(std::string_view line, std::int64_t step) {
    batch.add(line);
    steps.push_back(step);
  }
};

class BatchSender {
 public:
  BatchSender(const HistoryTarget& target, std::uint64_t first_line) : target_(target), next_(first_line) {}

  void add(std::string_view line, std::int64_t step) {
    if (!parcel_.batch.takes(line.size())) flush();
    parcel_.add(line, step);
  }
  void flush() {
    if (parcel_.batch.lines == 0) return;
    send(parcel_);
    parcel_ = Parcel{};
  }
  [[nodiscard]] std::vector<std::int64_t> take_left_out() { return std::move(left_out_); }

 private:
  enum class Outcome : std::uint8_t { kArrived, kTooLarge };

  void send(Parcel& parcel) {
    Batch& batch = parcel.batch;
    batch.first_line = next_;
    BatchRecord record = record_of(batch, false);
    target_.state.save_batch(run_id(), record);
    if (deliver(batch) == Outcome::kTooLarge) return batch.lines > 1 ? split(parcel) : leave_out(parcel);
    record.confirmed = true;
    target_.state.save_batch(run_id(), record);
    next_ += batch.lines;
    target_.on_confirmed(batch.lines, batch.text.size());
  }

  // Throws when it is not known to have arrived.
  Outcome deliver(const Batch& batch) {
    const std::string what = "history of run " + run_id();
    const HttpRequest request = target_.stream.history_request(history_body(batch.first_line, batch.text));
    bool in_doubt = false;
    for (int number = 0;; ++number) {
      const HttpResponse response = target_.stream.attempt(request, what);
      const Verdict verdict = target_.http.settle(Endpoint::kFileStream, number, request, response, what);
      if (verdict.action == Verdict::Action::kDone) return Outcome::kArrived;
      if (verdict.action == Verdict::Action::kGiveUp) {
        // What may have landed stays on record: the next push asks what became of it.
        if (!in_doubt) target_.state.drop_batch(run_id(), batch.first_line);
        if (response.status == kTooLarge) return Outcome::kTooLarge;
        target_.access.refuse(response, what);
      }
      if (!verdict.may_have_acted) continue;
      in_doubt = true;
      if (has_landed(batch)) return Outcome::kArrived;
    }
  }

  bool has_landed(const Batch& batch) {
    const std::uint64_t end = batch.first_line + batch.lines;
    return settled_count(target_, target_.ask_line_count(), batch.first_line, end, true) == end;
  }

  void split(const Parcel& parcel) {
    Parcel half;
    std::string_view rest = parcel.batch.text;
    for (std::size_t line = 0; line < parcel.steps.size(); ++line) {
      if (line == parcel.steps.size() / 2) {
        send(half);
        half = Parcel{};
      }
      const std::size_t end = rest.find('\n');
      half.add(rest.substr(0, end), parcel.steps[line]);
      rest.remove_prefix(end + 1);
    }
    send(half);
  }

  // A line that is too large by itself must not hold up those after it for ever.
  void leave_out(const Parcel& parcel) {
    target_.state.leave_out(run_id(), parcel.batch.first_line, parcel.steps.front());
    left_out_.push_back(parcel.steps.front());
  }

  [[nodiscard]] const std::string& run_id() const { return target_.stream.run().run_id; }

  static constexpr int kTooLarge = 413;
  const HistoryTarget& target_;
  std::uint64_t next_;  // number of the next line at the server
  Parcel parcel_;
  std::vector<std::int64_t> left_out_;
};

}  // namespace

std::uint64_t patient_count(HttpClient& http, const std::function<std::uint64_t()>& ask_line_count,
                            std::uint64_t count, std::uint64_t expected) {
  for (int asked = 0; count < expected && asked < kLagQuestions; ++asked) {
    http.pause(kLagWait, {});
    count = ask_line_count();
  }
  return count;
}

std::uint64_t reconcile_history(const HistoryTarget& target, const std::vector<BatchRecord>& recorded,
                                bool open_batch_matches, std::uint64_t server_lines) {
  const std::string& run_id = target.stream.run().run_id;
  const bool open = !recorded.empty() && !recorded.back().confirmed;
  const std::uint64_t end = recorded.empty() ? 0 : recorded.back().first_line + recorded.back().lines;
  const std::uint64_t begin = open ? recorded.back().first_line : end;
  const std::uint64_t count = settled_count(target, server_lines, begin, end, open);
  if (!open) return end;
  // Its record stays until another takes its place: nobody knows for sure that it will not land yet.
  if (count == begin) return begin;
  if (!open_batch_matches) disagree(run_id, count, begin, begin);
  BatchRecord landed = recorded.back();
  landed.confirmed = true;
  target.state.save_batch(run_id, landed);
  return end;
}

std::vector<std::int64_t> send_history(const HistoryTarget& target, RunMerge& merge,
                                       const std::set<std::int64_t>& left_out, std::uint64_t first,
                                       std::uint64_t last) {
  BatchSender sender(target, first);
  std::string line;
  std::uint64_t number = 0;
  while (number < last && merge.next(line)) {
    throw_if_stopped(target.stop);
    if (line.size() > kMaxLineBytes || left_out.contains(merge.step())) continue;
    if (number++ >= first) sender.add(line, merge.step());
  }
  sender.flush();
  if (number < last) {
    throw Error(ErrorCode::kIo,
                "run " + target.stream.run().run_id + ": its files changed while they were read",
                "run the same command again");
  }
  return sender.take_left_out();
}

}  // namespace ranklog::sync
