#pragma once
// The HTTP side of wandb-standin. README.md has the list of what it answers.

#include <filesystem>
#include <iosfwd>
#include <memory>
#include <string>

#include "api_error.hpp"
#include "service.hpp"

namespace ranklog::standin {

struct ServerOptions {
  std::filesystem::path folder;
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any that is free
  Settings settings;
  Json script = Json::object();
  std::ostream* complaints = nullptr;  // a line for every request that was refused; null: none
};

// The constructor binds the port and takes over the folder; run() answers until stop() is called from another
// thread. Errors: ranklog::Error (port in use, folder not writable or damaged), ApiError (script).
class HttpServer {
 public:
  explicit HttpServer(ServerOptions options);
  ~HttpServer();

  [[nodiscard]] int port() const noexcept;
  [[nodiscard]] std::string url() const;  // "http://127.0.0.1:4711"
  void run();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ranklog::standin
