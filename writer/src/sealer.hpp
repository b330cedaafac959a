#pragma once
// The background thread: owns the database, seals what was logged into it, and looks after the tail.

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "file_system.hpp"
#include "ranklog/schema/rank_database.hpp"
#include "ranklog/schema/tail.hpp"
#include "recorder.hpp"

namespace ranklog::writer {

struct EndRecord {
  EndState state = EndState::kFinished;
  std::optional<int> exit_code;
};

class Sealer {
 public:
  struct Settings {
    std::filesystem::path rank_file;
    std::size_t chunk_rows = 4096;
    std::chrono::milliseconds sync_interval{1000};
    std::chrono::milliseconds seal_interval{30000};
    // Readers elsewhere take a file that has not changed for ten minutes for a dead one's.
    std::chrono::milliseconds heartbeat{60000};
    bool silent = false;  // nothing on stderr
  };

  // `recorder` outlives this.
  Sealer(Settings settings, RankDatabase database, Recorder& recorder);

  // The thread's body: until request_stop(), then seals what is left.
  void run() noexcept;

  // From any thread. Makes everything up to that number durable, or finds that the disk refuses; false if it
  // took longer.
  bool flush(std::uint64_t through, SteadyTime deadline);
  // The thread seals what is left, writes the end record if one is given, and ends. The first call counts.
  void request_stop(const std::optional<EndRecord>& end, SteadyTime deadline);
  bool wait_stopped(SteadyTime deadline);
  // Why the file could not be ended; empty if all is well.
  [[nodiscard]] std::string end_trouble() const;

 private:
  // The thread's own.
  void step();
  void serve_flush();
  [[nodiscard]] bool make_durable(std::uint64_t through);
  void note_time(SteadyTime now);
  [[nodiscard]] std::uint64_t pending() const;
  [[nodiscard]] bool enough_pending() const;
  [[nodiscard]] SteadyTime next_wake();
  [[nodiscard]] bool seal_due(SteadyTime now);
  void seal_what_is_due();
  void beat(SteadyTime now);
  bool seal(std::uint64_t most);
  bool collect(std::uint64_t most);
  bool commit();
  void sync_tail();
  [[nodiscard]] std::int64_t active_ns() const;
  void back_off();
  void report();
  void end();
  bool seal_rest(SteadyTime deadline);
  void merge_if_possible(SteadyTime deadline);

  const Settings settings_;
  const SteadyTime start_;
  Recorder& recorder_;

  // The thread's own.
  std::optional<RankDatabase> database_;
  RowGroupBuilder rows_;  // being collected; groups that are full go to chunks_
  std::vector<EncodedChunk> chunks_;
  std::optional<SealBatch> batch_;    // collected, not committed
  std::size_t batch_keys_ = 0;        // known when it was
  std::uint64_t watermark_ = 0;       // committed
  std::size_t keys_ = 0;              // committed
  std::optional<SteadyTime> oldest_;  // when something pending was first seen
  std::uint64_t flush_served_ = 0;
  bool flush_waits_ = false;
  SteadyTime last_sync_, last_commit_, retry_at_, last_report_;
  std::chrono::milliseconds backoff_{0};
  // While all that is due stands behind a row that its caller is still writing.
  std::chrono::milliseconds pause_{0};
  SteadyTime look_again_at_;
  bool reported_ = false;
  std::uint64_t reported_drops_ = 0;

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::uint64_t flush_requested_ = 0;
  std::uint64_t flush_through_ = 0;
  SteadyTime flush_deadline_;
  std::uint64_t flush_done_ = 0;
  bool stop_ = false;
  std::optional<EndRecord> end_;
  SteadyTime stop_deadline_;
  bool stopped_ = false;
  std::string end_trouble_;
};

}  // namespace ranklog::writer
