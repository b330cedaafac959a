// The program wandb-standin as people and scripts start it.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "harness.hpp"
#include "support/temp_dir.hpp"

extern char** environ;  // NOLINT

namespace ranklog::standin {
namespace {

using test::TempDir;

// A child process with its output in files.
class Program {
 public:
  Program(const TempDir& dir, std::vector<std::string> arguments) : out_(dir / "out"), err_(dir / "err") {
    arguments.insert(arguments.begin(), RANKLOG_STANDIN_PROGRAM);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_.c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err_.c_str(), flags, 0600);
    EXPECT_EQ(posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send(int signal) const { kill(pid_, signal); }
  // The exit status; -1 for a child that does not end.
  int wait() {
    int status = 0;
    for (int i = 0; waitpid(pid_, &status, WNOHANG) == 0; ++i) {
      if (i == 3000) return -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  [[nodiscard]] std::string out() const { return test::read_file(out_); }
  [[nodiscard]] std::string err() const { return test::read_file(err_); }

 private:
  std::filesystem::path out_, err_;
  pid_t pid_ = -1;
};

int wait_for_port(const std::filesystem::path& file) {
  for (int i = 0; i < 3000; ++i) {
    if (std::filesystem::exists(file)) return std::stoi(test::read_file(file));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return -1;
}

std::vector<std::string> serve(const TempDir& dir) {
  return {"--dir", (dir / "state").string(), "--port-file", (dir / "port").string()};
}

TEST(StandinProgram, TellsItsAddressServesAndStopsCleanlyOnBothSignals) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const TempDir dir;
    Program program(dir, serve(dir));
    const int port = wait_for_port(dir / "port");
    ASSERT_GT(port, 0);
    EXPECT_EQ(get_from(port, "/standin/state").text, R"({"projects":[]})");
    program.send(signal);
    EXPECT_EQ(program.wait(), 0);
    EXPECT_EQ(program.out(), "listening on http://127.0.0.1:" + std::to_string(port) + "\n");
  }
}

TEST(StandinProgram, APortInUseIsOneClearLineAndStatusOne) {
  const TempDir dir;
  const TempDir other;
  Program first(dir, serve(dir));
  const std::string port = std::to_string(wait_for_port(dir / "port"));
  Program second(other, {"--dir", (other / "state").string(), "--port", port});
  EXPECT_EQ(second.wait(), 1);
  const std::string told = second.err();
  EXPECT_NE(told.find("cannot listen on 127.0.0.1:" + port), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1);
}

TEST(StandinProgram, UsageErrorsAreStatusTwo) {
  const TempDir dir;
  EXPECT_EQ(Program(dir, {}).wait(), 2);
  EXPECT_EQ(Program(dir, {"--dir", (dir / "s").string(), "--port", "70000"}).wait(), 2);
  test::write_file(dir / "script.json", R"({"rules": [{"action": "explode"}]})");
  Program wrong(dir, {"--dir", (dir / "s").string(), "--script", (dir / "script.json").string()});
  EXPECT_EQ(wrong.wait(), 2);
  EXPECT_NE(wrong.err().find("rule 1"), std::string::npos);
  EXPECT_EQ(Program(dir, {"--dir", (dir / "s").string(), "--script", (dir / "nope").string()}).wait(), 2);
  EXPECT_EQ(Program(dir, {"show", "--dir", (dir / "nope").string()}).wait(), 2);
  Program unknown(dir, {"--dir", (dir / "s").string(), "--prot", "0"});
  EXPECT_EQ(unknown.wait(), 2);
  const std::string told = unknown.err();
  EXPECT_TRUE(told.starts_with("wandb-standin: ")) << told;
  EXPECT_NE(told.find("--port"), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
}

TEST(StandinProgram, AFolderThatIsDamagedIsNamedWithStatusFive) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "state/e/p");
  test::write_file(dir / "state/e/p/project.json", "{ half");
  Program program(dir, serve(dir));
  EXPECT_EQ(program.wait(), 5);
  EXPECT_NE(program.err().find("project.json"), std::string::npos) << program.err();
}

TEST(StandinProgram, HelpTeachesAndVersionIsTold) {
  const TempDir dir;
  Program help(dir, {"--help"});
  EXPECT_EQ(help.wait(), 0);
  EXPECT_NE(help.out().find("WANDB_BASE_URL"), std::string::npos);
  EXPECT_NE(help.out().find("cut_after"), std::string::npos);
  Program version(dir, {"--version"});
  EXPECT_EQ(version.wait(), 0);
  EXPECT_NE(version.out().find('.'), std::string::npos);
}

TEST(StandinProgram, ShowReadsAFolderWithoutAServer) {
  const TempDir dir;
  Program missing(dir, {"show", "--dir", (dir / "nowhere").string()});
  EXPECT_EQ(missing.wait(), 2);
  std::filesystem::create_directory(dir / "state");
  Program empty(dir, {"show", "--dir", (dir / "state").string()});
  EXPECT_EQ(empty.wait(), 0);
  EXPECT_EQ(empty.out(), "The server holds nothing yet.\n");
  Program json(dir, {"show", "--json", "--dir", (dir / "state").string()});
  EXPECT_EQ(json.wait(), 0);
  EXPECT_EQ(Json::parse(json.out()), Json::parse(R"({"projects": []})"));
  EXPECT_TRUE(std::filesystem::is_empty(dir / "state")) << "showing leaves no trace";
}

}  // namespace
}  // namespace ranklog::standin
