#pragma once
// ranklog-train as a user starts it, and what it left in its folder.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ranklog/schema/rank_file.hpp"
#include "ranklog/trainer/c10d_communicator.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::test {

using namespace std::chrono_literals;

class Job : public testing::Test {
 protected:
  // ranklog-train that logs into this test's folder. No variable of the machine reaches it.
  std::unique_ptr<Process> start(Arguments arguments, Variables variables = {});
  // The same in a process group of its own, as a shell starts what Ctrl-C is to reach.
  std::unique_ptr<Process> start_in_own_group(Arguments arguments);
  // One of `world_size` ranks, as a launcher that sets variables would start it.
  std::unique_ptr<Process> start_rank(int rank, int world_size, std::uint16_t port, Arguments arguments,
                                      Variables variables = {});

  [[nodiscard]] std::filesystem::path log_dir() const { return dir_ / "logs"; }
  // Of the run "job" in the default project.
  [[nodiscard]] std::filesystem::path folder() const { return log_dir() / "distributed-wandb" / "job"; }
  [[nodiscard]] RankFile rank_file(int rank, int number = 0) const;

  TempDir dir_;
};

// Steps at which a rank logged `key`, with the value. Fails the test where one step has two values.
[[nodiscard]] std::map<std::int64_t, double> series(const RankFile& file, const std::string& key);
// "ok", or what SQLite's own check found.
[[nodiscard]] std::string integrity(const std::filesystem::path& database);
[[nodiscard]] std::string config_value(const RankFile& file, const std::string& key);
[[nodiscard]] std::vector<Event> events_of_kind(const RankFile& file, const std::string& kind);

}  // namespace ranklog::test
