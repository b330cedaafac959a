#include "open_log.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "disk.hpp"
#include "environment.hpp"
#include "launch_choice.hpp"
#include "process_facts.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "ranklog/schema/time.hpp"
#include "signals.hpp"
#include "standard_output.hpp"
#include "write_mode.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

// Of "x~2": "x". Empty if the id has no such form.
std::string_view sibling_of(std::string_view experiment) {
  const auto mark = experiment.rfind('~');
  const bool numbered =
      mark != std::string_view::npos && parse_count(experiment.substr(mark + 1)).value_or(0) > 1;
  return numbered ? experiment.substr(0, mark) : std::string_view();
}

// A second run must not be uploaded as the first, though WANDB_RUN_ID says x for both: not if the writer made
// it "x~2" by itself, nor if it is continued by that name.
bool is_uploaded_as_told(const Settings& settings, const std::string& experiment) {
  if (experiment == settings.wandb_run_id) return true;
  const std::string_view first = sibling_of(experiment);
  return first.empty() || (experiment == settings.launch.experiment && first != settings.wandb_run_id);
}

Identity make_identity(const Settings& settings, const LaunchChoice& choice) {
  const Options& options = settings.options;
  Identity identity;
  identity.project = options.project;
  identity.experiment = choice.experiment;
  identity.entity = options.entity;
  identity.group = options.group;
  identity.job_type = options.job_type;
  identity.name = options.name;
  identity.notes = options.notes;
  identity.tags = options.tags;
  if (is_uploaded_as_told(settings, choice.experiment)) identity.wandb_run_id = settings.wandb_run_id;
  identity.log_strategy = options.log_strategy;
  identity.rank = settings.place.rank;
  identity.local_rank = settings.place.local_rank;
  identity.world_size = settings.place.world_size;
  identity.local_world_size = settings.place.local_world_size;
  identity.node = settings.place.node;
  identity.launch_token = choice.token;
  if (choice.resumed) identity.resume_step = options.resume_step;
  describe_process(identity);
  return identity;
}

// Readers do without it; it makes the id durable and easy to find before the first step.
void write_experiment_file(const fs::path& folder, const Identity& identity, std::int64_t start_time_ns) {
  const fs::path path = folder / kExperimentFileName;
  std::error_code error;
  if (identity.rank != 0 || fs::exists(path, error)) return;
  const nlohmann::ordered_json content{
      {"project", identity.project},       {"experiment", identity.experiment},
      {"entity", identity.entity},         {"group", identity.group},
      {"world_size", identity.world_size}, {"launch_token", identity.launch_token},
      {"start_time_ns", start_time_ns}};
  publish_file(path, content.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

bool is_silent() {
  return is_true(lookup(process_environment(), "WANDB_SILENT").value_or(""));
}

struct NewFile {
  fs::path path;
  RankDatabase database;
};

// The next free number, created exclusively: an earlier file is never opened for writing.
NewFile create_rank_file(const fs::path& folder, const Identity& identity, std::int64_t start_time_ns,
                         const Durability& durability) {
  for (int number = 0;; ++number) {
    fs::path path = folder / rank_file_name(identity.rank, number);
    std::error_code error;
    if (fs::exists(path, error)) continue;
    try {
      auto database = RankDatabase::create(path, identity, start_time_ns, durability);
      return {std::move(path), std::move(database)};
    } catch (const Error& failure) {
      if (failure.code() != ErrorCode::kBusy || !fs::exists(path, error)) throw;
    }
  }
}

// Where counting goes on after a resume that names no step: behind what this rank has logged.
std::int64_t step_after_earlier_files(const fs::path& folder, int rank, const fs::path& own) {
  constexpr auto kLastStep = std::numeric_limits<std::int64_t>::max();
  std::int64_t next = 0;
  for (int number = 0;; ++number) {
    const fs::path path = folder / rank_file_name(rank, number);
    if (path == own) return next;
    try {
      const auto last = RankFile::open(path).info().last_step;
      if (last) next = std::max(next, *last == kLastStep ? kLastStep : *last + 1);
    } catch (const Error&) {
      continue;  // damaged or removed: it has no say
    }
  }
}

std::int64_t first_step(const Settings& settings, const LaunchChoice& choice, const fs::path& own) {
  if (!choice.resumed) return 0;
  if (settings.options.resume_step) return *settings.options.resume_step;
  return step_after_earlier_files(own.parent_path(), settings.place.rank, own);
}

double random_fraction() {
  std::random_device random;
  return static_cast<double>(random() - std::random_device::min()) /
         static_cast<double>(std::random_device::max() - std::random_device::min());
}

Sealer::Settings sealer_settings(const WriteMode& mode, const Options& options, const fs::path& path) {
  Sealer::Settings result;
  result.rank_file = path;
  result.chunk_rows = std::max<std::size_t>(options.chunk_rows, 1);
  result.sync_interval = mode.sync_interval;
  result.seal_interval = mode.seal_interval;
  result.heartbeat = mode.heartbeat;
  result.silent = is_silent();
  return result;
}

// One line a node, for all of its ranks have it.
void tell_fallback(const OpenLog& log, const Durability& wanted, const Durability& found) {
  const bool as_wanted = wanted.journal == found.journal && wanted.locks == found.locks;
  if (as_wanted || is_silent() || log.identity.local_rank != 0) return;
  print_line(log.path.string() + " (" + found.file_system + "): journal_mode=" +
             std::string(to_string(found.journal)) + (found.locks ? "" : " without locks") + " instead of " +
             std::string(to_string(wanted.journal)) + ", which is slower and as safe: " + found.reason);
}

void start_core(OpenLog& log, const Settings& settings, const WriteMode& mode, const LaunchChoice& choice,
                RankDatabase database) {
  const Options& options = settings.options;
  const Recorder::Limits limits{std::max<std::size_t>(options.queue_bytes, 1), options.when_full,
                                options.strict};
  TailQueue::Files files{log.path, encode_tail_header(log.identity.launch_token, log.identity.rank),
                         mode.tail};
  log.core = std::make_shared<Core>(limits, first_step(settings, choice, log.path), std::move(files),
                                    sealer_settings(mode, options, log.path), std::move(database));
  log.core->folder = log.folder;
  sync_folder(log.folder);
}

OpenLog create_log(const Settings& settings, const LaunchChoice& choice, const fs::path& folder) {
  const auto start_time_ns = unix_time_ns();
  OpenLog log;
  log.identity = make_identity(settings, choice);
  log.folder = folder;
  write_experiment_file(log.folder, log.identity, start_time_ns);
  const auto mode = choose_write_mode(log.folder, settings.options, process_environment(), random_fraction());
  const auto durability = durability_of(mode);
  auto file = create_rank_file(log.folder, log.identity, start_time_ns, durability);
  log.path = file.path;
  tell_fallback(log, durability, file.database.durability());
  try {
    start_core(log, settings, mode, choice, std::move(file.database));
  } catch (...) {
    discard(log);
    throw;
  }
  return log;
}

void require_possible_step(const Options& options) {
  if (options.resume_step.value_or(0) >= 0) return;
  throw Error(ErrorCode::kUsage,
              "cannot resume at step " + std::to_string(*options.resume_step) + ": steps count from 0",
              "set Options::resume_step to the first step that this launch logs");
}

}  // namespace

OpenLog open_log(const Settings& settings) {
  require_possible_step(settings.options);
  const FileSizeSignalBlocked no_signal;
  const auto choice = choose_launch(settings);
  const fs::path folder = folder_of(settings, choice);
  create_folders(folder);
  try {
    return create_log(settings, choice, folder);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) throw;
    throw Error(ErrorCode::kIo, error.what(),
                "make " + folder.string() + " writable, or set RANKLOG_DIR (--log-dir) to a folder that is");
  }
}

void discard(OpenLog& log) noexcept {
  if (log.core) log.core->recorder.queue().remove_files(true);
  log.core.reset();  // closes the files
  std::error_code ignored;
  fs::remove(log.path, ignored);
}

}  // namespace ranklog::writer
