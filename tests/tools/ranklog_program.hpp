#pragma once
// The program `ranklog`, run on logs of its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "logs.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::test {

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

inline bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline int lines_in(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

struct Ran {
  int status = -1;
  std::string out, err;
};

class RanklogProgram : public ::testing::Test {
 protected:
  // In the test's folder, with none of the variables that the program looks at but those given.
  Ran run(const Arguments& arguments, const Variables& variables = {}) {
    Arguments words{"-C", dir_.path().string(), RANKLOG_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Variables environment{
        {"RANKLOG_DIR", ""}, {"WANDB_DIR", ""}, {"NO_COLOR", ""}, {"COLUMNS", ""}, {"LINES", ""}};
    for (const auto& [name, value] : variables) environment[name] = value;
    Process process("/usr/bin/env", words, environment);
    const int status = process.wait();
    return {status, process.output(), process.errors()};
  }

  Identity identity(const std::string& experiment, int rank, int world_size) {
    Identity who = identity_of_rank(rank, world_size);
    who.project = "digits";
    who.experiment = experiment;
    who.group = "demo";
    return who;
  }

  std::filesystem::path path_of(const Identity& who, int number = 0) {
    return rank_path(dir_ / "ranklog", who, number);
  }

  // `ranks` of `world_size` ranks with 20 steps of loss each.
  void write(const std::string& experiment, const std::vector<int>& ranks, int world_size,
             std::optional<EndState> end = EndState::kFinished) {
    for (const int rank : ranks) {
      const Identity who = identity(experiment, rank, world_size);
      RankFileBuilder file(path_of(who), who, now_ns());
      for (int step = 0; step < 20; ++step) {
        file.row(step, {{"loss", 2.0 / (1 + step) + rank}, {"train/lr", 0.1}});
      }
      if (end) file.finish(*end, *end == EndState::kFinished ? 0 : 1);
    }
  }

  TempDir dir_;
};

}  // namespace ranklog::test
