#pragma once
// A loopback HTTP server that does with each request what the test says, down to the bytes.

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace ranklog::sync::test {

struct RawRequest {
  std::string head;  // request line and headers
  std::string body;  // as much of it as came
};

class RawServer {
 public:
  // What to send for the n-th request (from 0); empty: close without a word.
  using Reply = std::function<std::string(std::size_t number, const RawRequest& request)>;

  explicit RawServer(Reply reply);
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::vector<RawRequest> requests();

  // A reply that leaves the connection open for the next request.
  [[nodiscard]] static std::string reply(int status, const std::string& body,
                                         const std::string& headers = "");

 private:
  void accept_all(const std::stop_token& token);
  void serve(int connection);

  Reply reply_;
  int listener_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<RawRequest> requests_;       // guarded by mutex_
  std::set<int> open_;                     // guarded by mutex_
  std::vector<std::jthread> connections_;  // the acceptor's own
  std::jthread acceptor_;
};

}  // namespace ranklog::sync::test
