#pragma once
// How a log is written where it lies: by the file system, unless the user says otherwise.

#include <chrono>
#include <filesystem>

#include "file_system.hpp"
#include "ranklog/schema/durability.hpp"
#include "ranklog/writer/writer.hpp"

namespace ranklog::writer {

struct WriteMode {
  TailMode tail = TailMode::kAppend;
  JournalMode journal = JournalMode::kPersist;
  std::chrono::milliseconds sync_interval{1000};
  std::chrono::milliseconds seal_interval{30000};
  std::chrono::milliseconds heartbeat{60000};
  std::string file_system;
  std::string reason;
};

// Options over RANKLOG_JOURNAL, RANKLOG_TAIL and RANKLOG_FILE_SYSTEM over what `folder` lies on. `jitter`,
// from 0 to 1 and another for each rank, shortens the long intervals of shared file systems by up to half:
// thousands of ranks that started together must not sync together for ever. Throws Error (kUsage) for a word
// that is not understood.
[[nodiscard]] WriteMode choose_write_mode(const std::filesystem::path& folder, const Options& options,
                                          const EnvLookup& environment, double jitter);

// What RankDatabase::create() is asked for.
[[nodiscard]] Durability durability_of(const WriteMode& mode);

}  // namespace ranklog::writer
