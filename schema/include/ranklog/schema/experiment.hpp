#pragma once
// From folders and files to experiments: which rank files belong together, and to which attempt.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/rank_file.hpp"

namespace ranklog {

// One rank file of an attempt, known by its header alone. Open the path with RankFile to read more.
struct RankSegment {
  std::filesystem::path path;
  FileInfo info;
  std::vector<Damage> damage;  // that opening it showed, as a file cut short; chunks are not looked into
};

// The files of one launch: one token. Numbered from 0 by rank 0's start time (else the earliest).
struct Attempt {
  int number = 0;
  std::string launch_token;
  std::optional<std::int64_t> resume_step;  // the smallest of its files
  std::int64_t start_time_ns = 0;
  std::vector<RankSegment> segments;  // by rank, then start time (a rank started twice under one token)

  [[nodiscard]] bool has_rows() const noexcept;
};

enum class RunState : std::uint8_t { kRunning, kFinished, kFailed, kPreempted, kCrashed };
[[nodiscard]] std::string_view to_string(RunState state) noexcept;

struct Experiment {
  std::string project;
  std::string id;
  std::filesystem::path folder;  // of its first file
  std::vector<Attempt> attempts;

  [[nodiscard]] const Identity& identity() const;        // of the lowest rank of the newest attempt
  [[nodiscard]] std::vector<int> ranks() const;          // found, ascending
  [[nodiscard]] std::vector<int> missing_ranks() const;  // of world_size
  [[nodiscard]] int world_size() const;
  // Steps >= this of attempt `number` are superseded by a later attempt that has rows; empty: none are.
  [[nodiscard]] std::optional<std::int64_t> superseded_from(int number) const;
  // Steps >= this of one file of attempt `number` are superseded: by a later attempt, or because the rank was
  // rewound in a later file of its own. What the file itself says of rewinds comes to that (Supersession).
  [[nodiscard]] std::optional<std::int64_t> superseded_from(int number, const RankSegment& segment) const;
  // All files of one rank, oldest attempt first.
  [[nodiscard]] std::vector<const RankSegment*> segments_of(int rank) const;
};

struct ScanProblem {
  std::filesystem::path path;
  ErrorCode code;
  std::string message;
};

struct ScanResult {
  std::vector<Experiment> experiments;  // by project, then start time, then id
  std::vector<ScanProblem> problems;    // files that could not be opened, and damaged copies left out
};

// Finds rank files in `inputs` (log folders, project folders, experiment folders or single .db files) and
// groups them. The result is the same whatever the order of the inputs. Copies of one file (the same project,
// experiment, token, rank, start time, host and pid) count once: the one that has ended, else the one with
// the most rows, else with the latest heartbeat; of equal ones one that is not damaged. Damage of those left
// out is a problem. Folders whose name begins with '.', and folders inside one that holds rank files, are not
// entered. Throws Error (kNotFound) for an input that does not exist.
[[nodiscard]] ScanResult scan(std::span<const std::filesystem::path> inputs);

// What became of one rank file: its end record if it has one; crashed if a later attempt of the experiment
// exists, or its pid with that start time is gone on this host, or its heartbeat is older than
// `stale_seconds`; else running.
[[nodiscard]] RunState state_of(const Experiment& experiment, const RankSegment& segment, std::int64_t now_ns,
                                std::int64_t stale_seconds = 600);

}  // namespace ranklog
