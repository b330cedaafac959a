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
#include "ranklog/schema/rank_file.hpp"

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

bool is_young(const fs::path& file) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  return !error && fs::file_time_type::clock::now() - written < std::chrono::minutes(1);
}

std::optional<std::string> read_token(const fs::path& file) {
  try {
    return RankFile::open(file).info().identity.launch_token;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A file that another rank is just creating becomes readable in a moment.
std::optional<std::string> wait_for_token(const fs::path& file) {
  constexpr int kTries = 600;
  auto token = read_token(file);
  for (int i = 0; !token && i < kTries && is_young(file); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    token = read_token(file);
  }
  return token;
}

class Chooser {
 public:
  explicit Chooser(const Settings& settings) : settings_(settings) {}

  LaunchChoice alone();    // one process
  LaunchChoice told();     // rank 0 decides and tells
  LaunchChoice by_rule();  // every rank works out the same

 private:
  enum class Folder : std::uint8_t { kFree, kOurs, kOthers };

  [[nodiscard]] fs::path folder_of(const std::string& id) const {
    return experiment_folder(settings_.options.log_dir, settings_.options.project, id);
  }
  [[nodiscard]] bool is_there(const std::string& id) const { return !list_rank_files(folder_of(id)).empty(); }
  [[nodiscard]] std::set<std::string> own_tokens(const std::string& id) const;
  [[nodiscard]] Folder look_at(const std::string& id, const std::string& token) const;
  [[nodiscard]] std::string experiment_id() const;
  [[nodiscard]] std::optional<std::string> id_to_resume(const std::string& id) const;
  [[nodiscard]] std::string first_free_sibling(const std::string& id, const std::string& token) const;
  [[nodiscard]] std::string next_token(const std::string& id, const std::string& token) const;
  [[nodiscard]] LaunchChoice choose(const std::string& id, const std::string& token) const;
  void require_unused(const std::string& id, const std::string& token) const;
  [[nodiscard]] std::string fresh_token() const { return settings_.explicit_token.value_or(random_hex(8)); }

  const Settings& settings_;
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
  if (files.empty()) return Folder::kFree;
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
        "cannot resume experiment " + id + ": " + folder_of(id).string() + " holds no rank file",
        "check the id, the project and the log folder, or use RANKLOG_RESUME=auto to start it if it is not "
        "there");
  }
  std::string newest = id;
  for (int number = 2; settings_.restarted && is_there(sibling_name(id, number)); ++number) {
    newest = sibling_name(id, number);
  }
  return newest;
}

// A continuation is an attempt of its own even where the launcher has no new name for it. Counted over this
// rank's own files, so that all ranks that took part in every attempt agree.
std::string Chooser::next_token(const std::string& id, const std::string& token) const {
  const auto used = own_tokens(id);
  std::string next = token;
  for (int number = 2; used.count(next) > 0; ++number) next = token + "#" + std::to_string(number);
  return next;
}

void Chooser::require_unused(const std::string& id, const std::string& token) const {
  if (own_tokens(id).count(token) == 0) return;
  throw Error(ErrorCode::kUsage,
              "rank " + std::to_string(settings_.place.rank) + " has a file of this very launch (" + token +
                  ") in " + folder_of(id).string() + " already",
              "set RANKLOG_LAUNCH_ID to a text that is new for each launch and equal for its ranks, or set "
              "RANKLOG_RESUME=1 to continue the experiment");
}

LaunchChoice Chooser::choose(const std::string& id, const std::string& token) const {
  if (const auto resumed = id_to_resume(id)) return {*resumed, next_token(*resumed, token), true, {}};
  std::string free = first_free_sibling(id, token);
  require_unused(free, token);
  return {std::move(free), token, false, {}};
}

std::string Chooser::experiment_id() const {
  if (settings_.launch.experiment) return *settings_.launch.experiment;
  if (settings_.resume == Resume::kMust) {
    throw Error(ErrorCode::kUsage, "cannot resume: no experiment is named",
                "set RANKLOG_RUN_ID (or Options::experiment) to its id");
  }
  return random_run_id();
}

// The launcher's token would be equal for two programs of one batch script.
LaunchChoice Chooser::alone() {
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
      const auto choice = choose(experiment_id(), fresh_token());
      create_folders(folder_of(choice.experiment));
      message = {{"experiment", choice.experiment}, {"token", choice.token}, {"resumed", choice.resumed}};
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
  if (!message.contains("experiment")) {
    throw Error(ErrorCode::kUsage, "Options::agree did not return the text of rank 0",
                "make it broadcast its argument from rank 0 to every rank");
  }
  return {message.at("experiment"), message.at("token"), message.at("resumed"), {}};
}

}  // namespace

LaunchChoice choose_launch(const Settings& settings) {
  Chooser chooser(settings);
  LaunchChoice choice;
  if (settings.place.world_size == 1) {
    choice = chooser.alone();
  } else if (settings.options.agree) {
    choice = chooser.told();
  } else {
    choice = chooser.by_rule();
  }
  choice.folder = experiment_folder(settings.options.log_dir, settings.options.project, choice.experiment);
  create_folders(choice.folder);
  return choice;
}

}  // namespace ranklog::writer
