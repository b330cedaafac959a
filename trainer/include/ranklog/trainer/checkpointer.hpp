#pragma once
// Saves checkpoints in step with the other ranks and with the logs.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ranklog/trainer/checkpoint_folder.hpp"
#include "ranklog/trainer/communicator.hpp"
#include "ranklog/writer/writer.hpp"

namespace ranklog {

inline constexpr char kModelFileName[] = "model.pt";  // the one file of a checkpoint

// Passes a barrier and records it in this rank's log: from such events the clocks of the nodes are compared.
BarrierPassage logged_barrier(Communicator& communicator, Writer& log, const std::string& label,
                              std::int64_t step);

struct CheckpointPolicy {
  std::filesystem::path folder;  // <experiment>/checkpoints
  std::string artifact;          // name of the artifact whose versions the checkpoints are
  int keep = 0;                  // the newest so many; 0: all
  std::filesystem::path base;    // folder of the checkpoint that this launch went on from; empty for none
  // For rank 0's write, during which the others wait: a slow disk is no failure.
  std::chrono::milliseconds write_limit{std::chrono::hours(1)};
};

// One object a rank; save() is a collective call. The order of things:
//
//   all ranks flush their logs - barrier - rank 0 writes the file and, last, the manifest - barrier -
//   all ranks record an event "checkpoint", rank 0 the artifact
//
// so that a checkpoint that exists is whole, and every rank's log is durable up to its step (a rank whose log
// disk has failed does not stop it, and is listed in the manifest). save() returns on any rank only once the
// manifest is durable.
class Checkpointer {
 public:
  Checkpointer(Communicator& communicator, Writer& log, CheckpointPolicy policy);

  // about: step, epoch, metrics, and aliases of the artifact version beside "latest"; the rest is filled in.
  // write_model: called on rank 0 alone. Throws Error: kIo (rank 0 cannot write), kTimeout (a rank is
  // missing).
  void save(CheckpointManifest about, const std::function<void(const CheckpointWriter::Sink&)>& write_model);

  // Rank 0 records published checkpoints, by the names of their folders, as artifacts: those that a launch
  // before published and could not record any more. The others do nothing.
  void record_earlier(const std::vector<std::string>& names);

  // Relative to the experiment's folder: "checkpoints/step-00000400/model.pt"; empty before the first save().
  [[nodiscard]] const std::string& newest() const noexcept { return newest_; }

 private:
  [[nodiscard]] std::vector<int> flush_logs();
  void record(const CheckpointManifest& about);
  void record_artifact(const Checkpoint& checkpoint);
  void retain();

  Communicator& communicator_;
  Writer& log_;
  CheckpointPolicy policy_;
  CheckpointRetention retention_;
  std::string newest_;
};

}  // namespace ranklog
