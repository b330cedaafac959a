#include "raw_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace ranklog::sync::test {
namespace {

// Waits for bytes; false when the test is over or the peer has gone.
bool receive(int connection, std::string& into) {
  constexpr int kIdleMs = 20'000;
  pollfd waiting{connection, POLLIN, 0};
  if (poll(&waiting, 1, kIdleMs) <= 0) return false;
  std::array<char, 65536> buffer;
  const ssize_t got = recv(connection, buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  into.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

std::size_t content_length(const std::string& head) {
  const std::size_t at = head.find("Content-Length: ");
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
}

bool read_request(int connection, RawRequest& request) {
  std::string bytes;
  std::size_t end = std::string::npos;
  while ((end = bytes.find("\r\n\r\n")) == std::string::npos) {
    if (!receive(connection, bytes)) return false;
  }
  request.head = bytes.substr(0, end);
  request.body = bytes.substr(end + 4);
  while (request.body.size() < content_length(request.head) && receive(connection, request.body)) {
  }
  return true;
}

}  // namespace

RawServer::RawServer(Reply reply)
    : reply_(std::move(reply)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, generic, size) != 0 || listen(listener_, 16) != 0 ||
      getsockname(listener_, generic, &size) != 0) {
    throw std::runtime_error("no loopback port");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this](const std::stop_token& token) { accept_all(token); });
}

RawServer::~RawServer() {
  acceptor_.request_stop();
  acceptor_.join();
  {
    // Clients may keep connections open for longer than this server is there.
    const std::lock_guard lock(mutex_);
    for (const int connection : open_) shutdown(connection, SHUT_RDWR);
  }
  connections_.clear();
  close(listener_);
}

std::vector<RawRequest> RawServer::requests() {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::string RawServer::reply(int status, const std::string& body, const std::string& headers) {
  return "HTTP/1.1 " + std::to_string(status) + " x\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + headers + "\r\n" + body;
}

void RawServer::accept_all(const std::stop_token& token) {
  constexpr int kPollMs = 20;
  while (!token.stop_requested()) {
    pollfd waiting{listener_, POLLIN, 0};
    if (poll(&waiting, 1, kPollMs) <= 0) continue;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) connections_.emplace_back([this, connection] { serve(connection); });
  }
}

void RawServer::serve(int connection) {
  {
    const std::lock_guard lock(mutex_);
    open_.insert(connection);
  }
  RawRequest request;
  while (read_request(connection, request)) {
    std::size_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = requests_.size();
      requests_.push_back(request);
    }
    const std::string answer = reply_(number, request);
    if (answer.empty()) break;
    if (send(connection, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) break;
  }
  const std::lock_guard lock(mutex_);
  open_.erase(connection);
  close(connection);
}

}  // namespace ranklog::sync::test
