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

// Kinds of events that ranklog itself gives a meaning (FORMAT.md, "Events"). Frozen.
inline constexpr std::string_view kRewindEvent = "rewind";
inline constexpr std::string_view kBarrierEvent = "barrier";
inline constexpr std::string_view kCheckpointEvent = "checkpoint";
inline constexpr std::string_view kCheckpointRemovedEvent = "checkpoint-removed";
inline constexpr std::string_view kDropEvent = "drop";
inline constexpr std::string_view kPreemptEvent = "preempt";
inline constexpr std::string_view kArtifactUseEvent = "artifact_use";
inline constexpr std::string_view kArtifactLinkEvent = "artifact_link";

// Kinds that ranklog alone writes, after checks of its own: some of those above, and all that begin with '_'.
[[nodiscard]] bool is_reserved_event(std::string_view kind) noexcept;

// Something that happened at a moment.
struct Event {
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;
  std::optional<std::int64_t> step;
  std::string kind;  // one of those above, or a caller's own
  std::string json;  // an object with the details
};

// A file inside an artifact; or a reference, whose bytes stay elsewhere and are never uploaded.
struct ArtifactFile {
  std::string name;         // path inside the artifact: relative, forward slashes
  std::string path;         // where the bytes are, relative to the experiment's folder; empty: a reference
  std::uint64_t size = 0;   // bytes; of a reference 0 if it is not known
  std::string md5;          // 32 lower-case hex digits; of a reference empty if it is not known
  std::string sha256;       // 64 lower-case hex digits; the same
  std::string reference{};  // URL; empty: a file
  // An object: what the reference's store says of the object, "etag", "versionID", "digest". "{}" of a file.
  std::string json = "{}";
};

struct Artifact {
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;
  std::string name;
  std::string type;
  std::string description;
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> ttl_seconds{};  // empty: its collection's; 0: kept for ever
  std::vector<std::string> aliases;           // "latest" is always meant and not listed
  std::vector<std::string> tags;
  std::string metadata_json;  // an object without NaN; "{}" if none
  std::vector<ArtifactFile> files;
};

// A file that belongs to the run itself: one that was saved as such, or the bytes of a media value.
struct RunFile {
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;
  std::string name;         // its path at W&B: media/images/x_3_0a1b2c.png
  std::string path;         // where the bytes are, relative to the experiment's folder
  std::uint64_t size = 0;   // bytes
  std::string md5, sha256;  // lower-case hex digits
  std::string kind;         // "media" or "file"
};

// A summary value that wins over the one derived from the rows.
struct SummaryOverride {
  std::string key;   // display form
  std::string json;  // JSON text
};

}  // namespace ranklog
