#pragma once
// What a rank file holds besides points.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranklog {

enum class EndState : std::uint8_t { kFinished, kFailed, kPreempted };

[[nodiscard]] std::string_view to_string(EndState state) noexcept;  // "finished", "failed", "preempted"
[[nodiscard]] std::optional<EndState> parse_end_state(std::string_view text) noexcept;

// One top-level config key. A later entry for the same key wins.
struct ConfigEntry {
  std::string key;
  std::string json;  // JSON text of the value, secrets masked
};

// How a metric is charted and summarised; W&B's define_metric.
struct MetricDefinition {
  std::string name;  // a key's display form; a trailing '*' makes it a glob
  std::string step_metric;
  bool hidden = false;
  bool step_sync = false;
  std::vector<std::string> summary;  // of "min", "max", "mean", "last", "first", "none"; empty: last
  std::string goal;                  // "", "minimize" or "maximize"
};

// Something that happened at a moment: a barrier, a checkpoint, drops.
struct Event {
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;
  std::optional<std::int64_t> step;
  std::string kind;  // "barrier", "checkpoint", "drop" ...
  std::string json;  // an object with the details
};

struct ArtifactFile {
  std::string name;        // path inside the artifact: relative, forward slashes
  std::string path;        // where the bytes are, relative to the experiment's folder
  std::uint64_t size = 0;  // bytes
  std::string md5;         // 32 lower-case hex digits
  std::string sha256;      // 64 lower-case hex digits
};

struct Artifact {
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;
  std::string name;
  std::string type;
  std::string description;
  std::optional<std::int64_t> step;
  std::vector<std::string> aliases;  // "latest" is always meant and not listed
  std::vector<std::string> tags;
  std::string metadata_json;  // an object without NaN; "{}" if none
  std::vector<ArtifactFile> files;
};

// A summary value that wins over the one derived from the rows.
struct SummaryOverride {
  std::string key;   // display form
  std::string json;  // JSON text
};

}  // namespace ranklog
