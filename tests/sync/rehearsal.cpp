#include "rehearsal.hpp"

#include <fstream>
#include <thread>

namespace ranklog::sync::test {

using nlohmann::json;
using ranklog::test::Arguments;
using ranklog::test::Process;
using ranklog::test::Variables;

void RehearsalTest::serve(const json& rules, const std::vector<std::string>& options) {
  ranklog::test::write_file(dir_ / "script.json", json{{"rules", rules}}.dump());
  Arguments arguments = {"--dir",    (dir_ / "server").string(),     "--port-file", (dir_ / "port").string(),
                         "--script", (dir_ / "script.json").string()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  std::filesystem::remove(dir_ / "port");
  server_ = std::make_unique<Process>(WANDB_STANDIN_PROGRAM, arguments);
  std::string port;
  for (int i = 0; i < 600 && port.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (std::filesystem::exists(dir_ / "port")) port = ranklog::test::read_file(dir_ / "port");
  }
  ASSERT_FALSE(port.empty()) << server_->errors();
  while (port.ends_with('\n')) port.pop_back();
  url_ = "http://127.0.0.1:" + port;
}

std::unique_ptr<Process> RehearsalTest::start(const std::vector<std::string>& arguments,
                                              const Variables& variables) {
  Variables all = {{"HOME", dir_.path().string()},
                   {"WANDB_BASE_URL", url_},
                   {"WANDB_API_KEY", key_},
                   {"WANDB_DIR", dir_.path().string()},
                   {"WANDB_ENTITY", ""},
                   {"WANDB_SILENT", ""},
                   {"WANDB_CONFIG_DIR", ""},
                   {"NETRC", ""},
                   {"http_proxy", ""},
                   {"no_proxy", "127.0.0.1"}};
  for (const auto& [name, value] : variables) all[name] = value;
  return std::make_unique<Process>(WANDB_SYNC_PROGRAM, arguments, all);
}

int RehearsalTest::sync(const std::vector<std::string>& arguments, const Variables& variables) {
  const auto process = start(arguments, variables);
  const int status = process->wait();
  output_ = process->output();
  errors_ = process->errors();
  return status;
}

void RehearsalTest::advance_server(int seconds) {
  HttpRequest request;
  request.url = url_ + "/standin/clock";
  request.body = json{{"advance_seconds", seconds}}.dump();
  ASSERT_TRUE(transport_.perform(request).ok());
}

std::size_t RehearsalTest::requests_received() const {
  std::ifstream in(dir_ / "server/requests.jsonl");
  std::size_t lines = 0;
  for (std::string line; std::getline(in, line);) ++lines;
  return lines;
}

json RehearsalTest::project() {
  HttpRequest request;
  request.method = "GET";
  request.url = url_ + "/standin/state";
  const HttpResponse response = transport_.perform(request);
  const json state = json::parse(response.body, nullptr, false);
  if (!state.is_object() || state["projects"].empty()) return json::object();
  return state["projects"][0];
}

json RehearsalTest::runs() {
  json by_id = json::object();
  const json found = project();
  if (!found.contains("runs")) return by_id;
  for (const json& run : found["runs"]) by_id[run["id"].get<std::string>()] = run;
  return by_id;
}

json RehearsalTest::artifacts() {
  const json found = project();
  return found.contains("artifacts") ? found["artifacts"] : json::array();
}

std::vector<std::string> RehearsalTest::history(const std::string& run_id) const {
  std::vector<std::string> lines;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_ / "server")) {
    if (entry.path().filename() != "history.jsonl" || entry.path().parent_path().filename() != run_id)
      continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) lines.push_back(line);
  }
  return lines;
}

}  // namespace ranklog::sync::test
