#pragma once
// A command of the program: one file each, and one line in all_commands().

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace ranklog::cli {

struct Command {
  std::string name;
  std::string summary;  // one line, for ranklog --help
  // Declares flags and arguments on `app`; what it returns runs the command and gives its exit status. It may
  // throw Error.
  std::function<std::function<int()>(CLI::App& app)> set_up;
};

[[nodiscard]] Command ls_command();
[[nodiscard]] Command show_command();
[[nodiscard]] Command query_command();
[[nodiscard]] Command plot_command();
[[nodiscard]] Command check_command();
[[nodiscard]] Command compact_command();
[[nodiscard]] Command snapshot_command();

[[nodiscard]] const std::vector<Command>& all_commands();

// A line on stderr: "ranklog: <message>".
void print_error(std::string_view message);

// Parses, runs, and turns what goes wrong into one line on stderr and an exit status.
[[nodiscard]] int run(int argc, const char* const* argv);

}  // namespace ranklog::cli
