#pragma once
// wandb-sync as a process against wandb-standin as a process, each as a user starts it.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ranklog/sync/curl_transport.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::sync::test {

class RehearsalTest : public ::testing::Test {
 protected:
  // Starts the server. `rules`: what is to go wrong, as wandb-standin's script has it.
  void serve(const nlohmann::json& rules = nlohmann::json::array(),
             const std::vector<std::string>& options = {});
  void stop_serving() { server_.reset(); }

  // Starts wandb-sync with the server's address and a key, and a home of its own.
  [[nodiscard]] std::unique_ptr<ranklog::test::Process> start(const std::vector<std::string>& arguments,
                                                              const ranklog::test::Variables& variables = {});
  // Runs it to its end; returns the exit status and keeps what it said.
  int sync(const std::vector<std::string>& arguments, const ranklog::test::Variables& variables = {});

  // Moves the server's clock.
  void advance_server(int seconds);
  // Requests of uploaders that the server got so far.
  [[nodiscard]] std::size_t requests_received() const;

  // What the server holds.
  [[nodiscard]] nlohmann::json runs();       // by id
  [[nodiscard]] nlohmann::json artifacts();  // in order
  [[nodiscard]] std::vector<std::string> history(const std::string& run_id) const;

  [[nodiscard]] std::string logs() const { return (dir_ / "logs").string(); }

  ranklog::test::TempDir dir_;
  std::string key_ = std::string(40, '7');
  std::string url_;
  std::string output_, errors_;

 private:
  [[nodiscard]] nlohmann::json project();

  StopFlag stop_;
  CurlTransport transport_{{true, "", "test"}, stop_};
  std::unique_ptr<ranklog::test::Process> server_;
};

}  // namespace ranklog::sync::test
