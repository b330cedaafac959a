#include "settings.hpp"

#include "environment.hpp"
#include "ranklog/schema/naming.hpp"

namespace ranklog::writer {
namespace {

// A setting under both prefixes: RANKLOG_PROJECT, then WANDB_PROJECT.
std::string setting(const EnvLookup& environment, const std::string& suffix) {
  const auto found = lookup_any(environment, {"RANKLOG_" + suffix, "WANDB_" + suffix});
  return found ? found->text : "";
}

void fill(std::string& field, const EnvLookup& environment, const std::string& suffix) {
  if (field.empty()) field = setting(environment, suffix);
}

std::filesystem::path log_folder(const std::filesystem::path& given, const EnvLookup& environment) {
  const std::filesystem::path folder = given.empty() ? default_log_folder(environment) : given;
  // A later change of the working directory must not move the log.
  std::error_code error;
  const auto absolute = std::filesystem::absolute(folder, error);
  if (!error) return absolute.lexically_normal();
  throw Error(
      ErrorCode::kIo,
      "cannot tell where the log folder '" + folder.string() +
          "' is: the working directory cannot be found: " + error.message(),
      "set RANKLOG_DIR (--log-dir) to an absolute path, or start the program in a folder that exists");
}

ExplicitPlace explicit_place(const Options& options) {
  return {options.rank, options.local_rank, options.world_size, options.local_world_size, options.node};
}

}  // namespace

bool logging_is_disabled(const Options& options, const EnvLookup& environment) {
  return options.disabled || setting(environment, "MODE") == "disabled";
}

Settings resolve_settings(Options options, const EnvLookup& environment, const LaunchRequest& request) {
  Settings settings;
  settings.place = resolve_place(explicit_place(options), environment);
  settings.launch = resolve_launch(environment);
  if (!options.experiment.empty()) settings.launch.experiment = options.experiment;
  settings.wandb_run_id = lookup(environment, "WANDB_RUN_ID").value_or("");
  settings.explicit_token = lookup(environment, "RANKLOG_LAUNCH_ID");
  settings.restarted = settings.launch.restart_count > 0 || request.restarted;

  options.log_dir = log_folder(options.log_dir, environment);
  fill(options.project, environment, "PROJECT");
  if (options.project.empty()) options.project = "uncategorized";
  fill(options.entity, environment, "ENTITY");
  fill(options.group, environment, "RUN_GROUP");
  fill(options.job_type, environment, "JOB_TYPE");
  fill(options.name, environment, "NAME");
  fill(options.notes, environment, "NOTES");
  if (options.tags.empty()) options.tags = split_at_commas(setting(environment, "TAGS"));
  const auto wish = options.resume ? std::optional(Resume::kMust) : request.resume;
  settings.resume = resolve_resume(wish, settings.restarted, environment);
  settings.options = std::move(options);
  return settings;
}

}  // namespace ranklog::writer
