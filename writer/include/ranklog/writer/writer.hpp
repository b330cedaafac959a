#pragma once
// Logging from one rank into its own file. No network, no daemon, no other rank.
//
//   ranklog::Options options;
//   options.project = "distributed-wandb";
//   options.group = "my-experiment";
//   auto log = ranklog::Writer::open(options);
//   log.config({{"learning_rate", 1e-3}});
//   log.log(step, {{"loss", 0.31}, {"lr", 1e-3}});
//   log.artifact("model", "model").add_file("model.pt").commit();
//   log.finish();

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/identity.hpp"
#include "ranklog/schema/records.hpp"
#include "ranklog/schema/value.hpp"
#include "ranklog/writer/launch.hpp"

namespace ranklog {

enum class WhenFull : std::uint8_t {
  kBlock,  // log() waits for the background thread (default)
  kDrop,   // log() counts the row as dropped and returns at once
};

// Every field left empty is looked up: explicit option over RANKLOG_* over WANDB_* over default.
struct Options {
  std::filesystem::path log_dir;  // RANKLOG_DIR, WANDB_DIR/ranklog; default ./ranklog
  std::string project;            // RANKLOG_PROJECT, WANDB_PROJECT; default "uncategorized"
  std::string entity;             // WANDB_ENTITY
  std::string experiment;         // RANKLOG_RUN_ID, WANDB_RUN_ID, then the launcher's id, then `agree`
  std::string group;              // WANDB_RUN_GROUP
  std::string job_type;           // WANDB_JOB_TYPE
  std::string name;               // WANDB_NAME
  std::string notes;              // WANDB_NOTES
  std::vector<std::string> tags;  // WANDB_TAGS, comma separated
  std::optional<Strategy> log_strategy;

  // Explicit place in the job; otherwise read from the launcher's variables (launch.hpp).
  std::optional<int> rank, local_rank, world_size, local_world_size, node;

  // This launch continues the experiment: the first step that it logs anew. RANKLOG_RESUME=auto or a
  // launcher's restart count also make it one.
  bool resume = false;
  std::optional<std::int64_t> resume_step;

  // Broadcasts rank 0's text to all ranks (one line over c10d or MPI); called at most twice, by every rank,
  // in open(). Needed only where no launcher names the job.
  std::function<std::string(const std::string& of_this_rank)> agree;

  // What choose_launch() answered on one rank, told to every rank: open() then decides nothing by itself, and
  // `experiment`, `resume` and `agree` are not looked at.
  std::optional<LaunchChoice> choice;

  bool disabled = false;  // WANDB_MODE=disabled: every call is a no-op
  bool strict = false;    // log() refuses a step below the last one

  // How the file is written, where the choice by file system will not do: RANKLOG_JOURNAL (wal, persist,
  // truncate, delete) and RANKLOG_TAIL (mapped, append). WAL is given up where it does not work. Where the
  // file system is taken for what it is not, RANKLOG_FILE_SYSTEM (ext4, nfs, lustre ...) corrects all.
  std::string journal, tail;

  // Power loss costs at most what was logged within this time. Empty: 1 s on local disks; on file systems
  // that machines share 5 to 10 s, another time for each rank.
  std::optional<std::chrono::milliseconds> sync_interval;
  // Rows are sealed into a chunk when there are this many, or when the oldest is this old. Empty: 30 s; on
  // shared file systems 4 to 8 minutes. Until then they are in the tail, and as safe there.
  std::size_t chunk_rows = 4096;
  std::optional<std::chrono::milliseconds> seal_interval;
  // Encoded rows that wait for the background thread take at most this; then `when_full` says what happens.
  std::size_t queue_bytes = std::size_t{64} << 20;
  WhenFull when_full = WhenFull::kBlock;

  // Records what this process and its children print, from open() to finish() or to their death; what is
  // printed goes where it went before, unchanged and at once. Needs the program ranklog-console, which stands
  // in between (beside this program or library, or RANKLOG_CONSOLE_RELAY). One log of a process does so.
  // Empty: RANKLOG_CONSOLE (on, off), else on.
  std::optional<bool> console;
  // CPU, memory, disk, network, this process and NVIDIA GPUs are measured this often; 0: never. Local rank 0
  // measures what its node shares, every rank what is its own. Empty: RANKLOG_SYSTEM_METRICS (seconds, or
  // off), else 15 s.
  std::optional<std::chrono::milliseconds> system_metrics_interval;
};

struct LaunchRequest {
  std::optional<Resume> resume;  // empty: Options::resume, RANKLOG_RESUME, the launcher
  bool restarted = false;        // another rank's launcher says that it restarted the job
};

// The answer that open() would come to, for a program that must know it before (to look for a checkpoint):
// asked on one rank, told to all, passed to open() as Options::choice. Creates nothing; the same whether
// logging is disabled or not. Throws Error like open(), and kNotFound for an experiment to resume that is not
// there.
[[nodiscard]] LaunchChoice choose_launch(const Options& options, const LaunchRequest& request = {});

enum class LogStatus : std::uint8_t {
  kOk,        // survives the death of this process
  kInMemory,  // kept, but the tail could not be written (disk full or failing): lost if this process dies
              // before the disk has taken it, which is tried again and again; flush() tells
  kDropped,   // not kept; counted
  kRejected,  // a reserved or empty set of names, or under `strict` a step that goes back; counted nowhere
  kDisabled,  // logging is off
  kClosed,    // after finish(), or in a forked child
};

struct Field {
  std::string_view key;  // one name; a key with dots is one name too
  ValueView value;
};

// A key that Writer::key() has looked up, for calls that shall not look it up again. Of that writer only; one
// that was not got there is refused.
struct Key {
  std::uint32_t id = 0xFFFFFFFF;
};
struct KeyedField {
  Key key;
  ValueView value;
};

struct Outcome {
  bool durable = true;             // everything logged so far survives power loss
  std::uint64_t dropped_rows = 0;  // since open()
  std::string message;             // why not, for a person; empty if all is well
};

// How a file outside the experiment's folder comes into it.
enum class Capture : std::uint8_t {
  kCopy,  // its blocks are shared where the file system can do that, else copied
  kLink,  // a hard link where that is possible: for a file that is never changed in place
};

// Collects the files of one artifact version, then records it. Files inside the experiment's folder are
// recorded where they are; others are captured by commit(), each content once, so that changing or deleting
// them later changes nothing. Digests are computed behind the caller's back: the version is recorded, and
// durable, once flush() or finish() has returned.
class ArtifactBuilder {
 public:
  ArtifactBuilder& add_file(const std::filesystem::path& path, std::string_view name_in_artifact = {},
                            Capture capture = Capture::kCopy);
  // Something that stays where it is (s3://, gs://, https://, file://) and is never uploaded. `json`: what
  // its store says of it, an object with "etag", "versionID" or "digest".
  ArtifactBuilder& add_reference(std::string_view url, std::string_view name_in_artifact,
                                 std::uint64_t size = 0, std::string_view json = "{}");
  // For a file whose digests the caller already has (md5 and sha256 in lower-case hex); must lie inside the
  // experiment's folder.
  ArtifactBuilder& add_digested_file(const std::filesystem::path& path, std::string_view name_in_artifact,
                                     std::uint64_t size, std::string_view md5, std::string_view sha256);
  ArtifactBuilder& alias(std::string_view alias);
  ArtifactBuilder& tag(std::string_view tag);
  ArtifactBuilder& description(std::string_view text);
  ArtifactBuilder& metadata_json(std::string_view object);  // NaN and infinities are refused
  ArtifactBuilder& step(std::int64_t step);
  // How long W&B keeps the version; 0: for ever. Without it, its collection's rule.
  ArtifactBuilder& ttl(std::chrono::seconds ttl);
  // Throws Error: kNotFound or kIo (a file), kUsage (metadata, a name that is not relative, no files).
  void commit();

 private:
  friend class Writer;
  struct Impl;
  explicit ArtifactBuilder(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

enum class MediaKind : std::uint8_t {
  kImage,
  kAudio,
  kVideo,
  kHtml,
  kTable,  // W&B's table JSON: {"columns": [...], "data": [[...], ...]}
  kObject3D,
  kMolecule,
  kPlotly,
};
struct MediaFile {
  std::filesystem::path path;
  std::string caption;
};
// One media value: one file, or several where W&B has a list of the kind (at one key and step).
struct Media {
  MediaKind kind = MediaKind::kImage;
  std::vector<MediaFile> files;
  std::string json =
      "{}";  // an object with what W&B shows of the kind: "format", "width", "height", "ncols" ...
  Capture capture = Capture::kCopy;
};

// Threads: every method may be called from any thread, except that the object is moved and destroyed by one.
// After fork() the child's calls are no-ops that return kClosed and do not touch the parent's files.
//
// What survives: a row whose log() returned kOk survives the death of the process at any later moment; power
// loss costs at most `sync_interval`; after flush() returned durable nothing is lost. Destroying an
// unfinished writer keeps everything and leaves the file as "not ended".
//
// Cost: log() copies the row into memory and into the tail: a shared mapping where space can be reserved
// (ext4, xfs, tmpfs), one small write elsewhere (RANKLOG_TAIL=mapped|append forces one). No encoding,
// compression, SQLite call or fsync on the calling thread. A disk that hangs altogether can still hold up a
// page fault or that write; a log folder in memory-backed storage (tmpfs) cannot.
class Writer {
 public:
  // Throws Error: kUsage (contradicting variables, no id for several ranks), kIo (folder not writable),
  // kBusy.
  static Writer open(Options options);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();

  LogStatus log(std::int64_t step, std::span<const Field> fields) noexcept;
  LogStatus log(std::int64_t step, std::initializer_list<Field> fields) noexcept;
  // At the step after the greatest one logged (0 at first; after a resume, resume_step).
  LogStatus log(std::initializer_list<Field> fields) noexcept;
  LogStatus log(std::span<const Field> fields) noexcept;
  [[nodiscard]] Key key(std::string_view name) noexcept;
  LogStatus log(std::int64_t step, std::span<const KeyedField> fields) noexcept;
  LogStatus log(std::int64_t step, std::initializer_list<KeyedField> fields) noexcept;
  // A JSON object; nested objects become key paths, lists and objects with "_type" one value. kRejected if it
  // is no object.
  LogStatus log_json(std::int64_t step, std::string_view object) noexcept;

  LogStatus config(std::initializer_list<Field> entries) noexcept;
  LogStatus config(std::span<const Field> entries) noexcept;
  LogStatus config_json(std::string_view object) noexcept;  // its top-level keys
  LogStatus define_metric(const MetricDefinition& definition) noexcept;
  LogStatus summary(std::initializer_list<Field> entries) noexcept;
  LogStatus summary(std::span<const Field> entries) noexcept;
  // kRejected: no kind or no object; a kind that ranklog alone writes ("rewind", "drop", "artifact_use",
  // "artifact_link"), or that begins with '_'.
  LogStatus event(std::string_view kind, std::string_view json_object,
                  std::optional<std::int64_t> step = {}) noexcept;
  // What follows replaces everything of this rank from that step on; earlier rows stay in the file. Counted
  // steps go on from there.
  LogStatus rewind(std::int64_t step) noexcept;
  // The files are captured at once, and the row is recorded when they have been digested: after flush().
  // Throws Error: kNotFound or kIo (a file), kUsage (no file, fields that are no object, a reserved key).
  LogStatus log_media(std::int64_t step, std::string_view key, const Media& media);
  // `edges` are one more than `counts`, of which there are at most 512. Throws Error (kUsage).
  LogStatus log_histogram(std::int64_t step, std::string_view key, std::span<const double> edges,
                          std::span<const double> counts);
  // A file of the run itself, under that name (a relative path) at W&B. Captured as media are. Throws Error.
  LogStatus save_file(const std::filesystem::path& path, std::string_view name = {},
                      Capture capture = Capture::kCopy);
  // That this run used a version made elsewhere ("entity/project/name:alias"); that a version of its own
  // artifact `name` belongs to a collection ("entity/project/collection") too.
  LogStatus use_artifact(std::string_view artifact, std::string_view type = {}) noexcept;
  LogStatus link_artifact(std::string_view name, std::string_view target,
                          const std::vector<std::string>& aliases = {}) noexcept;
  [[nodiscard]] ArtifactBuilder artifact(std::string_view name, std::string_view type);

  // Waits until all that was logged before is on the device, at most `limit`.
  [[nodiscard]] Outcome flush(std::chrono::milliseconds limit = std::chrono::seconds(30)) noexcept;
  // Ends the file: seals the tail, writes the end record, leaves the .db alone. Idempotent. At most `limit`.
  Outcome finish(EndState state = EndState::kFinished, std::optional<int> exit_code = 0,
                 std::chrono::milliseconds limit = std::chrono::seconds(30)) noexcept;

  [[nodiscard]] const Identity& identity() const noexcept;
  [[nodiscard]] const std::filesystem::path& path() const noexcept;    // the .db; empty if disabled
  [[nodiscard]] const std::filesystem::path& folder() const noexcept;  // the experiment's
  [[nodiscard]] bool enabled() const noexcept;

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ranklog
