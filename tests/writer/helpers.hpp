#pragma once
// What the tests of the writer share.

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ranklog/schema/rank_file.hpp"
#include "ranklog/writer/writer.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::test {

// Options of one lone process that logs into `folder` as experiment "job", and nothing by itself.
[[nodiscard]] Options options_in(const std::filesystem::path& folder);

// One log() call, as a reader finds it.
struct ReadRow {
  std::uint64_t sequence = 0;
  std::int64_t step = 0;
  std::int64_t time_ns = 0;
  std::map<std::string, Value> values;  // by display form
};
// All rows of a file, chunks and tail, by sequence.
[[nodiscard]] std::vector<ReadRow> read_rows(const std::filesystem::path& file);
// The values of one key, in order; every row must have it as an int64.
[[nodiscard]] std::vector<std::int64_t> read_numbers(const std::filesystem::path& file,
                                                     const std::string& key);

// SQLite's own opinion: "ok".
[[nodiscard]] std::string integrity_check(const std::filesystem::path& file);

// Names in a folder, sorted.
[[nodiscard]] std::vector<std::string> list_folder(const std::filesystem::path& folder);

// Sets variables for its own lifetime, and removes every launcher's first.
class ScopedEnvironment {
 public:
  explicit ScopedEnvironment(const std::map<std::string, std::string>& variables);
  ~ScopedEnvironment();
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  std::map<std::string, std::string> before_;
};

// A forked child that runs `body` and ends by _exit with what it returns (99 on an exception), so that
// nothing of the test's own is run twice.
class Child {
 public:
  explicit Child(const std::function<int()>& body);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill();
  // The exit status, or 128 + the signal.
  int wait();

 private:
  pid_t pid_ = -1;
};

// A pipe between parent and child.
class Pipe {
 public:
  Pipe();
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_reader();
  void close_writer();
  void write(const void* data, std::size_t bytes) const;
  // False at the end.
  [[nodiscard]] bool read(void* data, std::size_t bytes) const;

 private:
  int fds_[2] = {-1, -1};
};

}  // namespace ranklog::test
