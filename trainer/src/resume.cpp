#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "ranklog/trainer/checkpointer.hpp"
#include "ranklog/trainer/training.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Relative to the experiment's folder. Throws Error for a log that cannot be read.
std::set<std::string> files_recorded_by_rank_zero(const fs::path& folder) {
  std::set<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const auto name = parse_rank_file_name(entry.path().filename().string());
    if (!name || name->rank != 0) continue;
    for (const Artifact& artifact : RankFile::open(entry.path()).artifacts()) {
      for (const ArtifactFile& file : artifact.files) files.insert(file.path);
    }
  }
  return files;
}

// A kill can come between publishing and recording. Where a log cannot be read nobody knows what it tells.
std::vector<std::string> find_unrecorded(const fs::path& folder) {
  std::vector<std::string> unrecorded;
  const fs::path checkpoints = folder / kCheckpointsFolderName;
  try {
    const std::set<std::string> recorded = files_recorded_by_rank_zero(folder);
    for (const std::string& name : list_published_checkpoints(checkpoints)) {
      const fs::path file = fs::path(kCheckpointsFolderName) / name / kModelFileName;
      if (recorded.contains(file.generic_string())) continue;
      (void)open_checkpoint(checkpoints / name);
      unrecorded.push_back(name);
    }
  } catch (const std::exception&) {
    return {};
  }
  std::reverse(unrecorded.begin(), unrecorded.end());  // in the order of their making
  return unrecorded;
}

// Who asks to go on does not want to lose what was trained.
[[noreturn]] void refuse_to_begin_anew(const fs::path& checkpoints, const NewestCheckpoint& newest) {
  std::string reasons;
  for (const std::string& reason : newest.skipped) reasons += (reasons.empty() ? "" : "; ") + reason;
  throw Error(ErrorCode::kDamaged, "no checkpoint can be resumed from: " + reasons,
              "bring one back, or remove '" + checkpoints.string() + "' to begin at step 0");
}

Json look_for_checkpoint(const fs::path& folder) {
  const fs::path checkpoints = folder / kCheckpointsFolderName;
  remove_unpublished_checkpoints(checkpoints);
  const NewestCheckpoint newest = find_newest_checkpoint(checkpoints);
  if (!newest.found && !newest.skipped.empty()) refuse_to_begin_anew(checkpoints, newest);
  for (const fs::path& damaged : newest.damaged) retire_damaged_checkpoint(damaged);
  Json found = {{"skipped", newest.skipped}};
  if (newest.found) {
    found["step"] = newest.found->manifest.step;
    found["file"] = newest.found->file(kModelFileName).lexically_relative(folder).generic_string();
    found["unrecorded"] = find_unrecorded(folder);
  }
  return found;
}

fs::path folder_of(const Options& options, const std::string& experiment) {
  std::error_code problem;  // the writer will name it
  const fs::path absolute = fs::absolute(options.log_dir, problem);
  return experiment_folder((problem ? options.log_dir : absolute).lexically_normal(), options.project,
                           experiment);
}

Json decide(const Options& options, const LaunchRequest& request) {
  try {
    const LaunchChoice choice = choose_launch(options, request);
    Json decision = {{"experiment", choice.experiment}, {"token", choice.token}, {"resumed", choice.resumed}};
    if (choice.resumed) decision["checkpoint"] = look_for_checkpoint(folder_of(options, choice.experiment));
    return decision;
  } catch (const Error& e) {
    return {{"error", e.what()}, {"code", static_cast<int>(e.code())}};
  } catch (const std::exception& e) {
    return {{"error", e.what()}, {"code", static_cast<int>(ErrorCode::kIo)}};
  }
}

void take_checkpoint(const Json& found, AttemptPlan& plan) {
  found.at("skipped").get_to(plan.resume.skipped);
  if (!found.contains("file")) return;
  plan.resume.model_file = plan.folder / found.at("file").get<std::string>();
  found.at("step").get_to(plan.resume.step);
  found.at("unrecorded").get_to(plan.resume.unrecorded);
}

}  // namespace

AttemptPlan plan_attempt(const Options& options, const LaunchRequest& request, Communicator& communicator) {
  const auto replace = Json::error_handler_t::replace;
  const std::string decided = communicator.broadcast(
      communicator.rank() == 0 ? decide(options, request).dump(-1, ' ', false, replace) : "");
  const Json json = Json::parse(decided);
  if (json.contains("error")) {
    throw Error(static_cast<ErrorCode>(json.at("code").get<int>()), json.at("error").get<std::string>());
  }
  AttemptPlan plan;
  json.at("experiment").get_to(plan.choice.experiment);
  json.at("token").get_to(plan.choice.token);
  json.at("resumed").get_to(plan.choice.resumed);
  plan.folder = folder_of(options, plan.choice.experiment);
  if (json.contains("checkpoint")) take_checkpoint(json.at("checkpoint"), plan);
  return plan;
}

}  // namespace ranklog
