#include "process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <thread>

extern char** environ;

namespace ranklog::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookInterval{20};

std::vector<std::string> merged_environment(const Variables& variables) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!variables.contains(std::string(text.substr(0, text.find('='))))) merged.emplace_back(text);
  }
  for (const auto& [name, value] : variables) {
    if (!value.empty()) merged.push_back(name + "=" + value);
  }
  return merged;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void redirect(const char* path, int to) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd >= 0) ::dup2(fd, to);
}

}  // namespace

Process::Process(const std::filesystem::path& program, const Arguments& arguments,
                 const Variables& variables) {
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = merged_environment(variables);
  const std::vector<char*> argv = pointers_to(words);
  const std::vector<char*> envp = pointers_to(environment);
  const std::string out = (dir_ / "out").string();
  const std::string err = (dir_ / "err").string();
  write_file(out, "");
  write_file(err, "");
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid_ > 0) return;
  redirect("/dev/null", STDIN_FILENO);
  redirect(out.c_str(), STDOUT_FILENO);
  redirect(err.c_str(), STDERR_FILENO);
  ::execve(program.c_str(), argv.data(), envp.data());
  ::_exit(127);
}

Process::~Process() {
  if (ended()) return;
  send(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Process::send(int signal) const {
  if (running_) ::kill(pid_, signal);
}

bool Process::ended() {
  int status = 0;
  if (running_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    running_ = false;
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return !running_;
}

int Process::wait(std::chrono::seconds limit) {
  const auto deadline = Clock::now() + limit;
  while (!ended() && Clock::now() < deadline) std::this_thread::sleep_for(kLookInterval);
  if (running_) {
    send(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    running_ = false;
  }
  return status_;
}

bool Process::wait_for_error_output(const std::string& text, std::chrono::seconds limit) {
  const auto deadline = Clock::now() + limit;
  while (Clock::now() < deadline) {
    const bool over = ended();
    if (errors().find(text) != std::string::npos) return true;
    if (over) return false;
    std::this_thread::sleep_for(kLookInterval);
  }
  return false;
}

}  // namespace ranklog::test
