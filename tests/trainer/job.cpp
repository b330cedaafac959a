#include "job.hpp"

#include <sqlite3.h>

namespace ranklog::test {

namespace {

Variables without_the_machines(Variables variables) {
  for (const char* name :
       {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT",
        "RANKLOG_RUN_ID", "RANKLOG_RESUME", "RANKLOG_PROJECT", "WANDB_RUN_ID", "WANDB_PROJECT", "WANDB_MODE",
        "WANDB_RUN_GROUP", "SLURM_PROCID", "SLURM_JOB_ID", "SLURM_RESTART_COUNT"}) {
    variables.try_emplace(name, "");
  }
  return variables;
}

}  // namespace

std::unique_ptr<Process> Job::start(Arguments arguments, Variables variables) {
  arguments.insert(arguments.end(), {"--log_dir", log_dir().string()});
  return std::make_unique<Process>(RANKLOG_TRAIN, arguments, without_the_machines(std::move(variables)));
}

std::unique_ptr<Process> Job::start_in_own_group(Arguments arguments) {
  arguments.insert(arguments.begin(), RANKLOG_TRAIN);
  arguments.insert(arguments.end(), {"--log_dir", log_dir().string()});
  return std::make_unique<Process>("/usr/bin/setsid", arguments, without_the_machines({}));
}

std::unique_ptr<Process> Job::start_rank(int rank, int world_size, std::uint16_t port, Arguments arguments,
                                         Variables variables) {
  variables.try_emplace("RANK", std::to_string(rank));
  variables.try_emplace("LOCAL_RANK", std::to_string(rank));
  variables.try_emplace("WORLD_SIZE", std::to_string(world_size));
  variables.try_emplace("LOCAL_WORLD_SIZE", std::to_string(world_size));
  variables.try_emplace("MASTER_ADDR", "127.0.0.1");
  variables.try_emplace("MASTER_PORT", std::to_string(port));
  return start(std::move(arguments), std::move(variables));
}

RankFile Job::rank_file(int rank, int number) const {
  const std::string suffix = number == 0 ? "" : "." + std::to_string(number);
  return RankFile::open(folder() / ("rank-0000" + std::to_string(rank) + suffix + ".db"));
}

std::map<std::int64_t, double> series(const RankFile& file, const std::string& key) {
  std::map<std::int64_t, double> values;
  for (std::size_t i = 0; i < file.row_groups().size(); ++i) {
    const RowGroup group = file.load(i);
    for (const Column& column : group.columns) {
      if (file.keys()[column.key()].display() != key) continue;
      for (std::size_t row = 0; row < group.rows(); ++row) {
        const bool fresh = values.emplace(group.step[row], column.at(row).as_double()).second;
        EXPECT_TRUE(fresh) << key << " twice at step " << group.step[row];
      }
    }
  }
  return values;
}

std::string integrity(const std::filesystem::path& database) {
  sqlite3* handle = nullptr;
  std::string answer = "cannot be opened";
  if (sqlite3_open_v2(database.c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr) == SQLITE_OK) {
    const auto take_first = [](void* to, int, char** values, char**) {
      *static_cast<std::string*>(to) = values[0];
      return 0;
    };
    sqlite3_exec(handle, "pragma integrity_check", take_first, &answer, nullptr);
  }
  sqlite3_close(handle);
  return answer;
}

std::string config_value(const RankFile& file, const std::string& key) {
  for (const ConfigEntry& entry : file.config()) {
    if (entry.key == key) return entry.json;
  }
  return "(none)";
}

std::vector<Event> events_of_kind(const RankFile& file, const std::string& kind) {
  std::vector<Event> events = file.events();
  std::erase_if(events, [&](const Event& event) { return event.kind != kind; });
  return events;
}

}  // namespace ranklog::test
