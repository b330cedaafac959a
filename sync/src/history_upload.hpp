#pragma once
// A run's history to the server, each line once, however often this is cut off and begun again.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "file_stream.hpp"
#include "ranklog/sync/plan.hpp"
#include "ranklog/sync/stop.hpp"
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

// All lines of a history in two words. Stands in the run's config before the first of them is sent, so that
// it can be told, when the upload state is lost, whether lines at the server are those that the files make.
struct HistoryClaim {
  std::uint64_t lines = 0;
  std::string sha256;  // of the lines, each with a '\n' after it
};

// What is known of a run before its rows are read.
struct HistoryKnown {
  std::vector<BatchRecord> recorded;
  std::set<std::int64_t> left_out;    // steps whose line the server found too large
  std::uint64_t adopt_lines = 0;      // so many are at the server, and no record of them is left
  std::optional<HistoryClaim> claim;  // that stands in the run's config at the server
};

// What a first pass over the rows finds.
struct HistorySurvey {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;       // that the lines beyond the recorded ones need
  bool open_batch_matches = false;  // the unconfirmed batch is still what the files say
  HistoryClaim claim;               // of all lines
  std::vector<std::int64_t> overlong_steps;
  std::vector<std::int64_t> left_out_steps;  // see HistoryKnown
  std::string summary;
  HistoryCounts counts;
  std::vector<Damage> damage;
  std::vector<BatchRecord> adopted;  // the lines of HistoryKnown::adopt_lines
  std::uint64_t metrics = 0;
};

// Reads the run once. Checks that it still begins with the recorded batches, or with the lines that are
// claimed. Throws ConflictError naming the lines that differ, and Error (kInterrupted) after a request to
// stop.
[[nodiscard]] HistorySurvey survey_history(RunMerge& merge, const HistoryKnown& known,
                                           const std::string& run_id, const StopFlag& stop);

// What is wrong with the rows, for plan and push alike.
[[nodiscard]] std::vector<PlanProblem> survey_faults(const HistorySurvey& survey);
// Why a run of which no row can be read does not go up.
[[nodiscard]] std::string unreadable_text(int rank, const HistorySurvey& survey);

struct HistoryTarget {
  FileStream& stream;
  HttpClient& http;
  const ServerAccess& access;
  UploadState& state;
  const StopFlag& stop;
  // How many history lines the server has now.
  std::function<std::uint64_t()> ask_line_count;
  // Told after each confirmed batch.
  std::function<void(std::uint64_t lines, std::uint64_t bytes)> on_confirmed;
};

// Decides what became of the unconfirmed batch, if there is one, and checks that server and record agree on
// what is there. Returns the line to go on from. Throws ConflictError if they do not.
[[nodiscard]] std::uint64_t reconcile_history(const HistoryTarget& target,
                                              const std::vector<BatchRecord>& recorded,
                                              bool open_batch_matches, std::uint64_t server_lines);

// The server's count of lines, given time to reach `expected` if it is below: counts may lag.
[[nodiscard]] std::uint64_t patient_count(HttpClient& http,
                                          const std::function<std::uint64_t()>& ask_line_count,
                                          std::uint64_t count, std::uint64_t expected);

// Sends lines [first, last) of a fresh merge, without those of steps in `left_out`. Returns the steps whose
// line the server found too large: they are recorded as left out, and the lines after them move up.
[[nodiscard]] std::vector<std::int64_t> send_history(const HistoryTarget& target, RunMerge& merge,
                                                     const std::set<std::int64_t>& left_out,
                                                     std::uint64_t first, std::uint64_t last);

}  // namespace ranklog::sync
