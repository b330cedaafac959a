#include "history_upload.hpp"

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
  throw Error(ErrorCode::kServer,
              "run " + run_id + ": the server has " + std::to_string(server) + " history lines where " +
                  ours + " were expected, so somebody else has written to the run or lines were lost",
              "upload it as a new run with --id");
}

// The server's count once it is one of the two that can be explained.
std::uint64_t settled_count(const HistoryTarget& target, std::uint64_t count, std::uint64_t begin,
                            std::uint64_t end) {
  for (int asked = 0; count < end && count != begin && asked < kLagQuestions; ++asked) {
    target.http.pause(kLagWait, {});
    count = target.ask_line_count();
  }
  if (count != begin && count != end) disagree(target.stream.run().run_id, count, begin, end);
  return count;
}

BatchRecord record_of(const Batch& batch, bool confirmed) {
  return {batch.first_line, batch.lines, sha256_hex(batch.text), confirmed};
}

class BatchSender {
 public:
  BatchSender(const HistoryTarget& target, std::uint64_t first_line) : target_(target) {
    batch_.first_line = first_line;
  }

  void add(std::string_view line) {
    if (!batch_.takes(line.size())) flush();
    batch_.add(line);
  }
  void flush() {
    if (batch_.lines == 0) return;
    send(batch_);
    const std::uint64_t next = batch_.first_line + batch_.lines;
    batch_.text.clear();
    batch_.lines = 0;
    batch_.first_line = next;
  }

 private:
  void send(const Batch& batch) {
    const std::string& run_id = target_.stream.run().run_id;
    BatchRecord record = record_of(batch, false);
    target_.state.save_batch(run_id, record);
    if (!deliver(batch)) return split(batch);
    record.confirmed = true;
    target_.state.save_batch(run_id, record);
    target_.on_confirmed(batch.lines, batch.text.size());
  }

  // False: the server finds it too large. Throws when it is not known to have arrived.
  bool deliver(const Batch& batch) {
    const std::string what = "history of run " + target_.stream.run().run_id;
    const HttpRequest request = target_.stream.history_request(history_body(batch.first_line, batch.text));
    for (int number = 0;; ++number) {
      const HttpResponse response = target_.stream.attempt(request);
      const Verdict verdict = target_.http.settle(Endpoint::kFileStream, number, request, response, what);
      if (verdict.action == Verdict::Action::kDone) return true;
      if (verdict.action == Verdict::Action::kGiveUp) {
        target_.state.drop_batch(target_.stream.run().run_id, batch.first_line);
        if (response.status == kTooLarge && batch.lines > 1) return false;
        target_.access.refuse(response, what);
      }
      if (verdict.may_have_acted && has_landed(batch)) return true;
    }
  }

  bool has_landed(const Batch& batch) {
    const std::uint64_t end = batch.first_line + batch.lines;
    return settled_count(target_, target_.ask_line_count(), batch.first_line, end) == end;
  }

  void split(const Batch& batch) {
    Batch half;
    half.first_line = batch.first_line;
    std::string_view rest = batch.text;
    for (std::uint64_t line = 0; line < batch.lines; ++line) {
      if (line == batch.lines / 2) {
        send(half);
        half = Batch{batch.first_line + line, 0, ""};
      }
      const std::size_t end = rest.find('\n');
      half.add(rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
    send(half);
  }

  static constexpr int kTooLarge = 413;
  const HistoryTarget& target_;
  Batch batch_;
};

}  // namespace

std::uint64_t reconcile_history(const HistoryTarget& target, const std::vector<BatchRecord>& recorded,
                                bool open_batch_matches, std::uint64_t server_lines) {
  const std::string& run_id = target.stream.run().run_id;
  const bool open = !recorded.empty() && !recorded.back().confirmed;
  const std::uint64_t end = recorded.empty() ? 0 : recorded.back().first_line + recorded.back().lines;
  const std::uint64_t begin = open ? recorded.back().first_line : end;
  const std::uint64_t count = settled_count(target, server_lines, begin, end);
  if (!open) return end;
  if (count == begin) {
    target.state.drop_batch(run_id, begin);
    return begin;
  }
  if (!open_batch_matches) disagree(run_id, count, begin, begin);
  BatchRecord landed = recorded.back();
  landed.confirmed = true;
  target.state.save_batch(run_id, landed);
  return end;
}

void send_history(const HistoryTarget& target, RunMerge& merge, std::uint64_t first, std::uint64_t last) {
  BatchSender sender(target, first);
  std::string line;
  std::uint64_t number = 0;
  while (number < last && merge.next(line)) {
    if (line.size() > kMaxLineBytes) continue;
    if (number++ >= first) sender.add(line);
  }
  sender.flush();
  if (number < last) {
    throw Error(ErrorCode::kIo,
                "run " + target.stream.run().run_id + ": its files changed while they were read",
                "run the same command again");
  }
}

}  // namespace ranklog::sync
