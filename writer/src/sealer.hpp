#pragma once
// The background thread: owns the database, seals what was logged into it, rotates and syncs the tail.

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
    std::string tail_header;
    TailMode tail_mode = TailMode::kAppend;
    unsigned next_segment = 2;
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

  // From any thread. Makes everything that was logged before durable; false if it took longer.
  bool flush(SteadyTime deadline);
  // The thread seals what is left, writes the end record if one is given, and ends. The first call counts.
  void request_stop(const std::optional<EndRecord>& end, SteadyTime deadline);
  bool wait_stopped(SteadyTime deadline);
  // Why the file could not be ended; empty if all is well.
  [[nodiscard]] std::string end_trouble() const;

 private:
  // The thread's own.
  void step();
  void serve_flush();
  [[nodiscard]] SteadyTime next_wake() const;
  [[nodiscard]] bool seal_due(SteadyTime now) const;
  void beat(SteadyTime now);
  bool seal();
  void begin_batch();
  [[nodiscard]] static SealBatch make_batch(const Backlog& backlog);
  bool commit();
  void resume_tail();
  void remove_broken_segments() noexcept;
  [[nodiscard]] std::shared_ptr<TailSegment> create_segment(int& error);
  void sync_tail();
  void back_off();
  void report();
  void end();
  bool seal_rest(SteadyTime deadline);

  const Settings settings_;
  Recorder& recorder_;

  // The thread's own.
  std::optional<RankDatabase> database_;
  std::optional<Backlog> backlog_;                             // taken, not committed
  std::optional<SealBatch> batch_;                             // the same, decoded
  std::vector<std::shared_ptr<TailSegment>> broken_segments_;  // kept until what they hold is sealed
  unsigned next_segment_;
  std::uint64_t watermark_ = 0;  // committed
  std::uint64_t flush_served_ = 0;
  SteadyTime last_sync_, last_commit_, retry_at_, last_report_;
  std::chrono::milliseconds backoff_{0};
  bool reported_ = false;
  std::uint64_t reported_drops_ = 0;
  bool last_round_ = false;  // no segment is needed any more

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::uint64_t flush_requested_ = 0;
  std::uint64_t flush_done_ = 0;
  bool stop_ = false;
  std::optional<EndRecord> end_;
  SteadyTime stop_deadline_;
  bool stopped_ = false;
  std::string end_trouble_;
};

}  // namespace ranklog::writer
