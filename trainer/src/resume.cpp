#include <nlohmann/json.hpp>

#include "ranklog/schema/naming.hpp"
#include "ranklog/trainer/checkpoint_folder.hpp"
#include "ranklog/trainer/training.hpp"

namespace ranklog {
namespace {

using Json = nlohmann::json;

constexpr char kModelFile[] = "model.pt";

Json look_for_checkpoint(const std::filesystem::path& folder) {
  const std::filesystem::path checkpoints = folder / kCheckpointsFolderName;
  remove_unpublished_checkpoints(checkpoints);
  const NewestCheckpoint newest = find_newest_checkpoint(checkpoints);
  Json plan = {{"continues", std::filesystem::exists(folder)}, {"skipped", newest.skipped}};
  if (newest.found) {
    plan["step"] = newest.found->manifest.step;
    plan["file"] = newest.found->file(kModelFile).lexically_relative(folder).generic_string();
  }
  return plan;
}

}  // namespace

ResumePlan plan_resume(bool resume, const std::filesystem::path& folder, Communicator& communicator) {
  ResumePlan plan;
  if (!resume) return plan;
  const std::string decided =
      communicator.broadcast(communicator.rank() == 0 ? look_for_checkpoint(folder).dump() : "");
  const Json json = Json::parse(decided);
  json.at("continues").get_to(plan.continues);
  json.at("skipped").get_to(plan.skipped);
  plan.step = json.value("step", std::int64_t{0});
  if (json.contains("file")) plan.model_file = folder / json.at("file").get<std::string>();
  return plan;
}

}  // namespace ranklog
