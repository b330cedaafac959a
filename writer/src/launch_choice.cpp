#include "launch_choice.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "disk.hpp"
#include "environment.hpp"
#include "process_facts.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/owner.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "ranklog/schema/time.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

std::string sibling_name(const std::string& id, int number) {
  return number == 1 ? id : id + "~" + std::to_string(number);
}

std::vector<std::pair<RankFileName, fs::path>> list_rank_files(const fs::path& folder) {
  std::vector<std::pair<RankFileName, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const auto name = parse_rank_file_name(entry->path().filename().string());
    if (name) files.emplace_back(*name, entry->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) throw_folder("read", folder, error.value());
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return files;
}

// Checkpoints without rank files are those of a run whose logging was disabled.
bool holds_checkpoints(const fs::path& folder) {
  std::error_code error;
  const fs::path checkpoints = folder / kCheckpointsFolderName;
  return fs::is_directory(checkpoints, error) && !fs::is_empty(checkpoints, error) && !error;
}

std::optional<FileInfo> read_info(const fs::path& file) {
  try {
    return RankFile::open(file).info();
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A file appears whole, but where there are no hard links it is empty for a moment. One that stays so is what
// a process left behind that died in that moment.
std::optional<FileInfo> wait_for_info(const fs::path& file) {
  constexpr auto kPause = std::chrono::milliseconds(50);
  constexpr int kTries = 20;
  auto info = read_info(file);
  std::error_code error;
  for (int i = 0; !info && i < kTries && fs::file_size(file, error) == 0 && !error; ++i) {
    std::this_thread::sleep_for(kPause);
    info = read_info(file);
  }
  return info;
}

std::optional<std::string> wait_for_token(const fs::path& file) {
  auto info = wait_for_info(file);
  if (!info) return std::nullopt;
  return std::move(info->identity.launch_token);
}

// A token's name of the launcher's job, whichever restart it is: "torchrun:job:29500:r1" without ":r1".
std::string without_restart_counts(std::string_view token) {
  std::string stem;
  while (!token.empty()) {
    std::string_view part = token.substr(0, token.find('|'));
    token.remove_prefix(std::min(part.size() + 1, token.size()));
    const auto count = part.rfind(":r");
    if (count != std::string_view::npos && parse_count(part.substr(count + 2))) part = part.substr(0, count);
    stem.append(part).append("|");
  }
  return stem;
}

// No file of a launch that is still beginning looks like this.
bool is_over(const FileInfo& info, std::int64_t process_start_ns) {
  constexpr std::int64_t kSilenceNs = 600'000'000'000;
  if (info.end_time_ns) return *info.end_time_ns < process_start_ns;
  return info.heartbeat_ns < process_start_ns - kSilenceNs;
}

class Chooser {
 public:
  explicit Chooser(const Settings& settings) : settings_(settings) {}

  LaunchChoice for_all();  // one process decides for all there are
  LaunchChoice told();     // rank 0 decides and tells
  LaunchChoice by_rule();  // every rank works out the same

 private:
  enum class Folder : std::uint8_t { kFree, kOurs, kOthers };

  [[nodiscard]] fs::path folder_of(const std::string& id) const {
    return experiment_folder(settings_.options.log_dir, settings_.options.project, id);
  }
  [[nodiscard]] bool is_there(const std::string& id) const {
    return !list_rank_files(folder_of(id)).empty() || holds_checkpoints(folder_of(id));
  }
  [[nodiscard]] std::optional<FileInfo> owner_of_token(const std::string& id, const std::string& token) const;
  [[nodiscard]] std::set<std::string> own_tokens(const std::string& id) const;
  [[nodiscard]] Folder look_at(const std::string& id, const std::string& token) const;
  [[nodiscard]] std::string experiment_id() const;
  [[nodiscard]] std::optional<std::string> id_to_resume(const std::string& id) const;
  [[nodiscard]] std::string first_free_sibling(const std::string& id, const std::string& token) const;
  [[nodiscard]] std::string next_token(const std::string& id, const std::string& token) const;
  [[nodiscard]] LaunchChoice choose(const std::string& id, const std::string& token) const;
  [[nodiscard]] std::string newest_sibling(const std::string& id) const;
  [[nodiscard]] bool holds_this_job(const std::string& id) const;
  void require_unused(const std::string& id, const std::string& token) const;
  void require_new(const std::string& id, const std::string& token) const;
  [[nodiscard]] std::string fresh_token() const;

  void require_even_nodes(int of_rank_zero) const;

  const Settings& settings_;
  bool decides_for_all_ = false;
};

std::set<std::string> Chooser::own_tokens(const std::string& id) const {
  std::set<std::string> tokens;
  for (const auto& [name, path] : list_rank_files(folder_of(id))) {
    if (name.rank != settings_.place.rank) continue;
    if (const auto token = wait_for_token(path)) tokens.insert(*token);
  }
  return tokens;
}

// One file tells whose the folder is. This rank's own are read first: only this launch can be adding others
// at this moment. A damaged file cannot tell; if no file can, the folder is left alone.
Chooser::Folder Chooser::look_at(const std::string& id, const std::string& token) const {
  auto files = list_rank_files(folder_of(id));
  if (files.empty()) return holds_checkpoints(folder_of(id)) ? Folder::kOthers : Folder::kFree;
  std::partition(files.begin(), files.end(),
                 [&](const auto& file) { return file.first.rank == settings_.place.rank; });
  for (const auto& [name, path] : files) {
    const auto found = wait_for_token(path);
    if (found) return *found == token ? Folder::kOurs : Folder::kOthers;
  }
  return Folder::kOthers;
}

std::string Chooser::first_free_sibling(const std::string& id, const std::string& token) const {
  for (int number = 1;; ++number) {
    std::string name = sibling_name(id, number);
    if (look_at(name, token) != Folder::kOthers) return name;
  }
}

// A restart continues what the launch before it wrote, be it a sibling; a request continues what it names.
std::optional<std::string> Chooser::id_to_resume(const std::string& id) const {
  if (settings_.resume == Resume::kNo) return std::nullopt;
  if (!is_there(id)) {
    if (settings_.resume == Resume::kIfThere) return std::nullopt;
    throw Error(
        ErrorCode::kNotFound,
        "cannot resume experiment " + id + ": " + folder_of(id).string() +
            " holds no rank file and no checkpoint",
        "check the id, the project and the log folder, or use RANKLOG_RESUME=auto to start it if it is not "
        "there");
  }
  return settings_.restarted ? newest_sibling(id) : id;
}

// The newest one of the launcher's own job, if any can be told to be that; else the newest.
std::string Chooser::newest_sibling(const std::string& id) const {
  std::string newest;
  std::optional<std::string> of_this_job;
  for (int number = 1; is_there(sibling_name(id, number)); ++number) {
    newest = sibling_name(id, number);
    if (holds_this_job(newest)) of_this_job = newest;
  }
  return of_this_job.value_or(newest);
}

// Told by the files of one rank, the same for whoever asks.
bool Chooser::holds_this_job(const std::string& id) const {
  if (!settings_.launch.token) return false;
  const std::string job = without_restart_counts(*settings_.launch.token);
  const auto files = list_rank_files(folder_of(id));
  return std::any_of(files.begin(), files.end(), [&](const auto& file) {
    if (file.first.rank != files.front().first.rank) return false;
    const auto token = wait_for_token(file.second);
    return token && without_restart_counts(*token).starts_with(job);
  });
}

// A continuation is an attempt of its own even where the launcher has no new name for it. For one process
// that decides for all: each rank counting for itself would not agree with one that was not there before.
std::string Chooser::next_token(const std::string& id, const std::string& token) const {
  const auto used = own_tokens(id);
  std::string next = token;
  for (int number = 2; used.count(next) > 0; ++number) next = token + "#" + std::to_string(number);
  return next;
}

std::optional<FileInfo> Chooser::owner_of_token(const std::string& id, const std::string& token) const {
  for (const auto& [name, path] : list_rank_files(folder_of(id))) {
    if (name.rank != settings_.place.rank) continue;
    auto info = wait_for_info(path);
    if (info && info->identity.launch_token == token) return info;
  }
  return std::nullopt;
}

void Chooser::require_unused(const std::string& id, const std::string& token) const {
  const auto owner = owner_of_token(id, token);
  if (!owner) return;
  throw Error(ErrorCode::kUsage,
              "rank " + std::to_string(settings_.place.rank) + " has a file of this very launch (" + token +
                  ") in " + folder_of(id).string() + " already: it belongs to " +
                  describe_owner(*owner, unix_time_ns()),
              "set RANKLOG_LAUNCH_ID to a text that is new for each launch and equal for its ranks, or set "
              "RANKLOG_RESUME=1 to continue the experiment");
}

// Where every rank chooses for itself, a continuation needs a token that no earlier launch had. Enough are
// asked to notice: this rank's files, and those of the lowest rank for one that has none.
void Chooser::require_new(const std::string& id, const std::string& token) const {
  const auto& place = settings_.place;
  const auto files = list_rank_files(folder_of(id));
  const auto is_earlier = [&](const auto& file) {
    const int rank = file.first.rank;
    if (rank != place.rank && rank != files.front().first.rank) return false;
    const auto info = wait_for_info(file.second);
    if (!info || info->identity.launch_token != token) return false;
    return rank == place.rank || info->identity.world_size != place.world_size ||
           is_over(*info, process_start_ns());
  };
  if (std::none_of(files.begin(), files.end(), is_earlier)) return;
  throw Error(ErrorCode::kUsage,
              "rank " + std::to_string(place.rank) + " cannot continue experiment " + id +
                  ": an earlier launch in " + folder_of(id).string() + " had the same token (" + token + ")",
              "set RANKLOG_LAUNCH_ID to a text that is new for each launch and equal for its ranks, or "
              "Options::agree to broadcast rank 0's choice");
}

LaunchChoice Chooser::choose(const std::string& id, const std::string& token) const {
  if (const auto resumed = id_to_resume(id)) {
    if (decides_for_all_) return {*resumed, next_token(*resumed, token), true};
    require_new(*resumed, token);
    return {*resumed, token, true};
  }
  std::string free = first_free_sibling(id, token);
  require_unused(free, token);
  return {std::move(free), token, false};
}

std::string Chooser::experiment_id() const {
  if (settings_.launch.experiment) return *settings_.launch.experiment;
  if (settings_.resume == Resume::kMust) {
    throw Error(ErrorCode::kUsage, "cannot resume: no experiment is named",
                "set RANKLOG_RUN_ID (or Options::experiment) to its id");
  }
  return random_run_id();
}

// The launcher's token alone would be equal for two programs of one batch script; but it tells a later
// restart whose experiment this is.
std::string Chooser::fresh_token() const {
  if (settings_.explicit_token) return *settings_.explicit_token;
  const std::string random = random_hex(8);
  return settings_.launch.token ? *settings_.launch.token + "|" + random : random;
}

LaunchChoice Chooser::for_all() {
  decides_for_all_ = true;
  return choose(experiment_id(), fresh_token());
}

LaunchChoice Chooser::by_rule() {
  if (!settings_.launch.experiment) {
    throw Error(ErrorCode::kUsage,
                "this is rank " + std::to_string(settings_.place.rank) + " of " +
                    std::to_string(settings_.place.world_size) +
                    ", but nothing names the experiment that the ranks share",
                "set RANKLOG_RUN_ID to one text for all ranks, or Options::agree to broadcast rank 0's");
  }
  const std::string& id = *settings_.launch.experiment;
  return choose(id, settings_.launch.token.value_or("by-hand:" + id));
}

// Rank 0's error is told too, so that the others stop with it instead of waiting.
LaunchChoice Chooser::told() {
  nlohmann::json message;
  if (settings_.place.rank == 0) {
    try {
      const auto choice = for_all();
      create_folders(folder_of(choice.experiment));
      message = {{"experiment", choice.experiment},
                 {"token", choice.token},
                 {"resumed", choice.resumed},
                 {"local_world_size", settings_.place.local_world_size}};
    } catch (const Error& error) {
      message = {{"error", error.what()}, {"code", static_cast<int>(error.code())}};
    } catch (const std::exception& error) {
      message = {{"error", std::string("rank 0 cannot choose the experiment's folder: ") + error.what()},
                 {"code", static_cast<int>(ErrorCode::kIo)}};
    }
  }
  const auto replace = nlohmann::json::error_handler_t::replace;
  message =
      nlohmann::json::parse(settings_.options.agree(message.dump(-1, ' ', false, replace)), nullptr, false);
  if (message.contains("error")) {
    throw Error(static_cast<ErrorCode>(message.at("code").get<int>()),
                message.at("error").get<std::string>());
  }
  if (!message.contains("experiment") || !message.contains("token") || !message.contains("resumed")) {
    throw Error(ErrorCode::kUsage, "Options::agree did not return the text of rank 0",
                "make it broadcast its argument from rank 0 to every rank");
  }
  require_even_nodes(message.value("local_world_size", settings_.place.local_world_size));
  return {message.at("experiment"), message.at("token"), message.at("resumed")};
}

// If every rank's node has as many processes as rank 0's, the nodes are even, and what was worked out from
// that is right. Where one has not, that one ends the launch.
void Chooser::require_even_nodes(int of_rank_zero) const {
  const auto& place = settings_.place;
  if (!place.if_nodes_are_even || place.local_world_size == of_rank_zero) return;
  throw Error(ErrorCode::kUsage,
              "the node of rank " + std::to_string(place.rank) + " is not known: it has " +
                  std::to_string(place.local_world_size) + " processes and rank 0's has " +
                  std::to_string(of_rank_zero) + ", so that nodes cannot be told by counting",
              "set GROUP_RANK to the number of the node, and LOCAL_RANK");
}

}  // namespace

LaunchChoice choose_launch(const Settings& settings) {
  if (settings.options.choice) return *settings.options.choice;
  Chooser chooser(settings);
  if (settings.place.world_size == 1) return chooser.for_all();
  return settings.options.agree ? chooser.told() : chooser.by_rule();
}

LaunchChoice choose_launch_for_all(const Settings& settings) {
  return Chooser(settings).for_all();
}

std::filesystem::path folder_of(const Settings& settings, const LaunchChoice& choice) {
  return experiment_folder(settings.options.log_dir, settings.options.project, choice.experiment);
}

}  // namespace ranklog::writer
