// wandb-standin: a server for tests and rehearsals that speaks the parts of W&B's protocol that uploads use.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "disk.hpp"
#include "http_server.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/suggest.hpp"
#include "show.hpp"

namespace ranklog::standin {
namespace {

constexpr std::size_t kWidth = 100;

constexpr const char* kAbout =
    R"(A server for tests and rehearsals that speaks the parts of W&B's protocol that uploads use.
It keeps what it gets in a folder of plain JSON files, and can be told to misbehave.

  wandb-standin --dir /tmp/rehearsal --port 8080
  export WANDB_BASE_URL=http://127.0.0.1:8080 WANDB_API_KEY=$(printf '0%.0s' $(seq 40))
  wandb-sync ranklog/
  wandb-standin show --dir /tmp/rehearsal

It is no place to keep results: it has no users, no TLS and no web pages.)";

constexpr const char* kFooter =
    R"(A script is JSON: {"rules": [{"operation": "UpsertBucket", "at": "1-2", "action": "status",
"status": 429, "retry_after": 1}, {"path": "*/file_stream", "at": 3, "action": "cut_after"}]}.
Fields of a rule; what is left out of the first three matches all (* stands for any characters):
  method, path, operation  of the request; operation is GraphQL's
  at           which of the matching requests: 2, "2-4", "2-", or a list of such (default: every one)
  action       status, cut_before (nothing done, no reply), cut_after (done, but the reply is lost),
               half_body (done, half a reply) or delay (only wait)
  delay_ms     wait so long first; with any action
  status, retry_after, headers, body, process   of action status: what to answer, where body is text or
               JSON; with "process": true the request is carried out all the same
While it runs: POST /standin/script, POST /standin/clock {"advance_seconds": 600}, GET /standin/state.

Exit status: 0 done, or stopped by a signal; 1 failed; 2 wrong usage; 5 the folder is damaged.)";

struct Arguments {
  std::string folder;
  std::string host = "127.0.0.1";
  int port = 0;
  std::string port_file;
  std::string script_file;
  std::vector<std::string> entities;
  std::string api_key;
  double crash_after_seconds = 300;
  bool json = false;
  bool quiet = false;
};

Json read_script(const std::string& path) {
  if (path.empty()) return Json::object();
  const auto text = read_text(path);
  if (!text) throw Error(ErrorCode::kUsage, "there is no script " + path, "name a JSON file with --script");
  Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) throw Error(ErrorCode::kUsage, "the script " + path + " is not JSON");
  return json;
}

ServerOptions options_from(const Arguments& arguments) {
  ServerOptions options;
  options.folder = arguments.folder;
  options.host = arguments.host;
  options.port = arguments.port;
  options.settings.entities = arguments.entities;
  options.settings.api_key = arguments.api_key;
  options.settings.crash_after =
      std::chrono::milliseconds(static_cast<long long>(arguments.crash_after_seconds * 1000));
  options.script = read_script(arguments.script_file);
  if (!arguments.quiet) options.complaints = &std::cerr;
  return options;
}

int serve(const Arguments& arguments) {
  // Before any thread exists, so that all of them leave the signals to sigwait().
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  HttpServer server(options_from(arguments));
  if (!arguments.port_file.empty()) write_text(arguments.port_file, std::to_string(server.port()) + "\n");
  std::cout << "listening on " << server.url() << '\n' << std::flush;
  std::thread worker([&server] { server.run(); });
  int signal = 0;
  sigwait(&signals, &signal);
  server.stop();
  worker.join();
  return kExitOk;
}

int show(const Arguments& arguments) {
  if (!std::filesystem::is_directory(arguments.folder)) {
    throw Error(ErrorCode::kUsage, "there is no folder " + arguments.folder, "name a server's with --dir");
  }
  Store store(arguments.folder);
  const SavedSettings saved = read_saved_settings(arguments.folder);
  Clock clock;
  clock.set_offset(saved.clock_offset_ms);
  const Json state = state_json(store, clock.now(), saved.crash_after);
  if (arguments.json) {
    std::cout << state.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    const bool color = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
    std::cout << state_text(state, kWidth, color);
  }
  return kExitOk;
}

std::string flag_hint(const CLI::App& app, const std::string& message) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  return hint_for_flag(message, known);
}

Error usage_error(const std::string& message, const std::string& hint) {
  return {ErrorCode::kUsage, message, hint.empty() ? "see wandb-standin --help" : hint};
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(kAbout, "wandb-standin");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("wandb-standin ") + RANKLOG_VERSION);
  app.add_option("--dir", arguments.folder, "Folder that keeps what the server gets; continued if it exists");
  app.add_option("--host", arguments.host, "Address to listen on")->capture_default_str();
  app.add_option("--port", arguments.port, "Port to listen on; 0 takes any that is free")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  app.add_option("--port-file", arguments.port_file, "Write the port number to this file once listening");
  app.add_option("--api-key", arguments.api_key, "The one key to accept (default: any of valid shape)");
  app.add_option(
      "--entity", arguments.entities,
      "An entity that exists; the first is the default one (default: \"rehearsal\", and all exist)");
  app.add_option("--crash-after", arguments.crash_after_seconds,
                 "Seconds of silence after which a run counts as crashed")
      ->capture_default_str();
  app.add_option("--script", arguments.script_file, "JSON file that says what is to go wrong");
  app.add_flag("--quiet", arguments.quiet, "Do not list refused requests on stderr");
  CLI::App* show_command = app.add_subcommand("show", "Show what a folder holds (the server need not run)");
  show_command->add_option("--dir", arguments.folder, "Folder of a server")->required();
  show_command->add_flag("--json", arguments.json, "As JSON");
  try {
    app.parse(argc, argv);
    if (!*show_command && arguments.folder.empty()) throw CLI::RequiredError("--dir");
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ExtrasError& error) {
    throw usage_error(error.what(), flag_hint(*show_command ? *show_command : app, error.what()));
  } catch (const CLI::ParseError& error) {
    throw usage_error(error.what(), {});
  }
  return *show_command ? show(arguments) : serve(arguments);
}

}  // namespace
}  // namespace ranklog::standin

int main(int argc, char** argv) {
  try {
    return ranklog::standin::run(argc, argv);
  } catch (const ranklog::Error& error) {
    std::cerr << "wandb-standin: " << error.what() << "\n";
    return ranklog::exit_status(error.code());
  } catch (const ranklog::standin::ApiError& error) {  // a script that makes no sense
    std::cerr << "wandb-standin: " << error.what() << "\n";
    return ranklog::kExitUsage;
  } catch (const std::exception& error) {
    std::cerr << "wandb-standin: " << error.what() << "\n";
    return ranklog::kExitFailed;
  }
}
