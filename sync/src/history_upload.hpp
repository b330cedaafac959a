#pragma once
// A run's history to the server, each line once, however often this is cut off and begun again.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "file_stream.hpp"
#include "run_merge.hpp"
#include "upload_state.hpp"

namespace ranklog::sync {

// What W&B takes (protocol page 3.6): bytes of a line, and of all lines of a request.
inline constexpr std::size_t kMaxLineBytes = 10'383'360;
inline constexpr std::size_t kMaxBatchBytes = std::size_t{10} << 20;

// Consecutive lines that go out together.
struct Batch {
  std::uint64_t first_line = 0;
  std::uint64_t lines = 0;
  std::string text;  // each line with a '\n' after it

  void add(std::string_view line) {
    text += line;
    text.push_back('\n');
    ++lines;
  }
  [[nodiscard]] bool takes(std::size_t line_bytes) const noexcept {
    return lines == 0 || text.size() + line_bytes <= kMaxBatchBytes;
  }
};

// What a first pass over the rows finds.
struct HistorySurvey {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;        // that the lines beyond the recorded ones need
  std::uint64_t recorded_lines = 0;  // that earlier pushes sent or were about to send
  bool open_batch_matches = false;   // the unconfirmed batch is still what the files say
  std::vector<std::int64_t> overlong_steps;
  std::string summary;
  HistoryCounts counts;
  std::vector<Damage> damage;
  std::vector<BatchRecord> adopted;  // see `adopt_lines`
  std::uint64_t metrics = 0;
};

// Reads the run once. Checks that it still begins with the recorded batches: throws Error (kServer) naming
// the lines that differ. `adopt_lines`: so many lines are at the server already and no record of them is
// left; they are returned as batches.
[[nodiscard]] HistorySurvey survey_history(RunMerge& merge, const std::vector<BatchRecord>& recorded,
                                           std::uint64_t adopt_lines, const std::string& run_id);

struct HistoryTarget {
  FileStream& stream;
  HttpClient& http;
  const ServerAccess& access;
  UploadState& state;
  // How many history lines the server has now.
  std::function<std::uint64_t()> ask_line_count;
  // Told after each confirmed batch.
  std::function<void(std::uint64_t lines, std::uint64_t bytes)> on_confirmed;
};

// Decides what became of the unconfirmed batch, if there is one, and checks that server and record agree on
// what is there. Returns the line to go on from. Throws Error (kServer) if they do not.
[[nodiscard]] std::uint64_t reconcile_history(const HistoryTarget& target,
                                              const std::vector<BatchRecord>& recorded,
                                              bool open_batch_matches, std::uint64_t server_lines);

// Sends lines [first, last) of a fresh merge.
void send_history(const HistoryTarget& target, RunMerge& merge, std::uint64_t first, std::uint64_t last);

}  // namespace ranklog::sync
