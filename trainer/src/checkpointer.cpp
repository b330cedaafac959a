#include "ranklog/trainer/checkpointer.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/time.hpp"

namespace ranklog {
namespace {

using Json = nlohmann::ordered_json;

std::string path_in_experiment(const std::string& folder_name) {
  return std::string(kCheckpointsFolderName) + "/" + folder_name;
}

}  // namespace

BarrierPassage logged_barrier(Communicator& communicator, Writer& log, const std::string& label,
                              std::int64_t step) {
  const BarrierPassage passage = communicator.barrier(label);
  const Json details = {{"label", label}, {"entered_ns", passage.entered_ns}, {"left_ns", passage.left_ns}};
  log.event("barrier", details.dump(), step);
  return passage;
}

Checkpointer::Checkpointer(Communicator& communicator, Writer& log, CheckpointPolicy policy)
    : communicator_(communicator),
      log_(log),
      policy_(std::move(policy)),
      retention_(policy_.folder, policy_.keep, policy_.base) {}

void Checkpointer::save(CheckpointManifest about,
                        const std::function<void(const CheckpointWriter::Sink&)>& write_model) {
  const std::string label = "checkpoint step " + std::to_string(about.step);
  about.ranks_without_durable_log = flush_logs();
  about.world_size = communicator_.size();
  about.time_ns = unix_time_ns();
  logged_barrier(communicator_, log_, label, about.step);
  std::optional<Checkpoint> published;
  if (communicator_.rank() == 0) {
    CheckpointWriter writer(policy_.folder, about.step);
    writer.write_file(kModelFileName, write_model);
    published = writer.publish(about);
  }
  communicator_.await_rank_zero(label, std::max(policy_.write_limit, communicator_.timeout()));
  logged_barrier(communicator_, log_, label + " published", about.step);
  newest_ = communicator_.broadcast(
      published ? path_in_experiment(published->folder.filename().string()) + "/" + kModelFileName : "");
  record(about);
  if (!published) return;
  record_artifact(*published);
  retention_.published(*published);
  retain();
}

void Checkpointer::record_earlier(const std::vector<std::string>& names) {
  if (communicator_.rank() != 0) return;
  for (const std::string& name : names) record_artifact(open_checkpoint(policy_.folder / name));
}

// Tells which ranks' logs are not on their disks.
std::vector<int> Checkpointer::flush_logs() {
  const bool durable = log_.flush().durable;
  const std::vector<std::string> answers = communicator_.all_gather(durable ? "durable" : "not");
  std::vector<int> failed;
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    if (answers[rank] != "durable") failed.push_back(static_cast<int>(rank));
  }
  return failed;
}

void Checkpointer::record(const CheckpointManifest& about) {
  const Json details = {{"path", newest_}, {"step", about.step}, {"epoch", about.epoch}};
  log_.event("checkpoint", details.dump(), about.step);
}

void Checkpointer::record_artifact(const Checkpoint& checkpoint) {
  if (!log_.enabled()) return;
  const CheckpointManifest& manifest = checkpoint.manifest;
  Json metadata = {{"epoch", manifest.epoch}, {"step", manifest.step}, {"world_size", manifest.world_size}};
  for (const auto& [name, value] : manifest.metrics) {
    if (std::isfinite(value)) metadata[name] = value;
  }
  const CheckpointFile& file = manifest.files.front();
  ArtifactBuilder artifact = log_.artifact(policy_.artifact, "model");
  artifact.add_digested_file(checkpoint.file(file.name), file.name, file.digests.size, file.digests.md5,
                             file.digests.sha256);
  for (const std::string& alias : manifest.aliases) artifact.alias(alias);
  artifact.metadata_json(metadata.dump()).step(manifest.step).commit();
}

// Told before it is done: a file that is missing later is then never a riddle.
void Checkpointer::retain() {
  for (const std::filesystem::path& folder : retention_.surplus()) {
    const Json details = {{"path", path_in_experiment(folder.filename().string())},
                          {"artifact", policy_.artifact},
                          {"reason", "keep"}};
    log_.event("checkpoint-removed", details.dump());
    remove_checkpoint(folder);
  }
}

}  // namespace ranklog
