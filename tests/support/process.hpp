#pragma once
// A program of ours as a child of the test: its output in memory, its end awaited with a limit.

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "temp_dir.hpp"

namespace ranklog::test {

using Arguments = std::vector<std::string>;
// Added to the test's own environment; an empty value removes the variable.
using Variables = std::map<std::string, std::string>;

// Output goes to files, so that a child that writes much never waits for its reader. A child that still runs
// when the object dies is killed.
class Process {
 public:
  Process(const std::filesystem::path& program, const Arguments& arguments, const Variables& variables = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void send(int signal) const;
  // Exit status; 128 + s if signal s ended it; -1 if it still runs after `limit`, and is then killed.
  int wait(std::chrono::seconds limit = std::chrono::seconds(120));
  // True once `text` is in stderr; false if it is not within `limit` or the process has ended without it.
  [[nodiscard]] bool wait_for_error_output(const std::string& text,
                                           std::chrono::seconds limit = std::chrono::seconds(120));
  [[nodiscard]] std::string output() const { return read_file(dir_ / "out"); }
  [[nodiscard]] std::string errors() const { return read_file(dir_ / "err"); }

 private:
  [[nodiscard]] bool ended();

  TempDir dir_;
  pid_t pid_ = -1;
  bool running_ = true;
  int status_ = -1;
};

}  // namespace ranklog::test
