#pragma once
// Checkpoints on disk: <experiment>/checkpoints/step-00000400/ with model.pt and manifest.json. A checkpoint
// exists when its manifest does; the manifest comes last and names size and digests of every file, so what
// was cut off by a kill is never taken for one. Nothing here knows what is in the files.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog {

struct CheckpointFile {
  std::string name;  // inside the checkpoint's folder
  FileDigests digests;
};

struct CheckpointManifest {
  std::int64_t step = 0;   // steps that were done
  std::int64_t epoch = 0;  // epochs that were done
  int world_size = 1;
  std::int64_t time_ns = 0;  // Unix
  std::map<std::string, double> metrics;
  std::vector<int> ranks_without_durable_log;  // whose log disk had failed
  std::vector<CheckpointFile> files;
};

struct Checkpoint {
  std::filesystem::path folder;
  CheckpointManifest manifest;

  [[nodiscard]] std::filesystem::path file(std::string_view name) const { return folder / name; }
};

// Writes one checkpoint; used by rank 0 alone. What survives: until publish() has returned, earlier
// checkpoints as they are and nothing of this one; afterwards this one too, also after power loss.
// Errors: Error (kIo) naming the file. A checkpoint that is not published is removed again.
class CheckpointWriter {
 public:
  using Sink = std::function<void(const void* data, std::size_t bytes)>;

  // Makes the folder for this step under `checkpoints`; "step-00000400.1" and so on where an attempt before
  // has left one, whose files are never touched.
  CheckpointWriter(const std::filesystem::path& checkpoints, std::int64_t step);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  ~CheckpointWriter();

  // `fill` passes the content piece by piece; digests are computed on the way.
  void write_file(const std::string& name, const std::function<void(const Sink&)>& fill);
  // Adds the files that were written to the manifest, and publishes it.
  Checkpoint publish(CheckpointManifest manifest);

 private:
  std::filesystem::path folder_;
  std::vector<CheckpointFile> files_;
  bool published_ = false;
};

// Reads the manifest and compares every file with it. Throws Error: kNotFound (no manifest), kDamaged naming
// the file and what is wrong with it.
[[nodiscard]] Checkpoint open_checkpoint(const std::filesystem::path& folder);

struct NewestCheckpoint {
  std::optional<Checkpoint> found;
  std::vector<std::string> skipped;  // newer ones that are damaged, and why
};
// By step, the latest published of a step first. An absent folder holds none.
[[nodiscard]] NewestCheckpoint find_newest_checkpoint(const std::filesystem::path& checkpoints);

// Removes folders that were never published: what a kill left behind. Only while nobody writes there.
void remove_unpublished_checkpoints(const std::filesystem::path& checkpoints);

// Keeps the newest `keep` published ones (at least one) and removes the rest, oldest first, each manifest
// before its files. Returns the names of those removed.
std::vector<std::string> retain_newest_checkpoints(const std::filesystem::path& checkpoints, int keep);

}  // namespace ranklog
