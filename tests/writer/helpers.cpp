#include "helpers.hpp"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

extern char** environ;

namespace ranklog::test {

namespace fs = std::filesystem;

Options options_in(const fs::path& folder) {
  Options options;
  options.log_dir = folder;
  options.project = "project";
  options.experiment = "job";
  options.rank = 0;
  options.world_size = 1;
  options.console = false;
  options.system_metrics_interval = std::chrono::milliseconds(0);
  return options;
}

std::vector<ReadRow> read_rows(const fs::path& path) {
  const auto file = RankFile::open(path);
  std::vector<ReadRow> rows;
  for (std::size_t i = 0; i < file.row_groups().size(); ++i) {
    const RowGroup group = file.load(i);
    for (std::size_t row = 0; row < group.rows(); ++row) {
      ReadRow read{group.sequence[row], group.step[row], group.time_ns[row], {}};
      for (const auto& column : group.columns) {
        read.values.emplace(file.keys().at(column.key()).display(), Value(column.at(row)));
      }
      rows.push_back(std::move(read));
    }
  }
  for (const auto& damage : file.damage()) throw std::runtime_error(damage.place + ": " + damage.reason);
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  return rows;
}

std::vector<std::int64_t> read_numbers(const fs::path& file, const std::string& key) {
  std::vector<std::int64_t> numbers;
  for (const auto& row : read_rows(file)) {
    const auto value = row.values.at(key).view();
    if (value.kind() != ValueKind::kInt64) throw std::runtime_error(key + " is no int64");
    numbers.push_back(value.as_int64());
  }
  return numbers;
}

std::string integrity_check(const fs::path& file) {
  sqlite3* raw = nullptr;
  // As the shell opens it: it may have to roll back what a process that died had begun.
  const int opened = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database(raw, sqlite3_close);
  if (opened != SQLITE_OK) return sqlite3_errmsg(raw);
  std::string answer;
  const auto collect = [](void* out, int, char** columns, char**) {
    *static_cast<std::string*>(out) += columns[0];
    return 0;
  };
  if (sqlite3_exec(raw, "PRAGMA integrity_check", collect, &answer, nullptr) != SQLITE_OK)
    return sqlite3_errmsg(raw);
  return answer;
}

std::vector<std::string> list_folder(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

bool is_launcher_variable(std::string_view name) {
  if (name == "RANKLOG_TAIL") return false;  // whole tests are run with it
  for (const std::string_view prefix :
       {"RANKLOG_", "WANDB_", "TORCHELASTIC_", "SLURM_", "OMPI_", "PMI", "MPI_", "PALS_"}) {
    if (name.starts_with(prefix)) return true;
  }
  for (const std::string_view known :
       {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_PORT", "ENVIRONMENT"}) {
    if (name == known) return true;
  }
  return false;
}

std::map<std::string, std::string> launcher_variables() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || !is_launcher_variable(text.substr(0, equals))) continue;
    found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

void unset_all(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, text] : variables) ::unsetenv(name.c_str());
}

void set_all(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, text] : variables) ::setenv(name.c_str(), text.c_str(), 1);
}

}  // namespace

ScopedEnvironment::ScopedEnvironment(const std::map<std::string, std::string>& variables)
    : before_(launcher_variables()) {
  unset_all(before_);
  set_all(variables);
}

ScopedEnvironment::~ScopedEnvironment() {
  unset_all(launcher_variables());
  set_all(before_);
}

Child::Child(const std::function<int()>& body) {
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  int status = 99;
  try {
    status = body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
  }
  ::_exit(status);
}

Child::~Child() {
  if (pid_ <= 0) return;
  kill();
  wait();
}

void Child::kill() {
  ::kill(pid_, SIGKILL);
}

int Child::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Pipe::Pipe() {
  if (::pipe(fds_) != 0) throw std::runtime_error("cannot make a pipe");
}

Pipe::~Pipe() {
  close_reader();
  close_writer();
}

void Pipe::close_reader() {
  if (fds_[0] >= 0) ::close(std::exchange(fds_[0], -1));
}

void Pipe::close_writer() {
  if (fds_[1] >= 0) ::close(std::exchange(fds_[1], -1));
}

void Pipe::write(const void* data, std::size_t bytes) const {
  if (::write(fds_[1], data, bytes) != static_cast<ssize_t>(bytes)) throw std::runtime_error("pipe closed");
}

bool Pipe::read(void* data, std::size_t bytes) const {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::read(fds_[0], at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace ranklog::test
