#include "network.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <thread>

#include "file_descriptor.hpp"
#include "ranklog/trainer/c10d_communicator.hpp"
#include "roster.hpp"

namespace ranklog {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) {
    throw Error(ErrorCode::kUsage, "MASTER_ADDR '" + host + "' does not resolve: " + gai_strerror(status));
  }
  return {found, &freeaddrinfo};
}

bool accepts_connections(const addrinfo& address) {
  const FileDescriptor fd(
      ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  if (!fd) return false;
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  return wait_until_writable(fd.get(), std::chrono::seconds(2)) && pending_error(fd.get()) == 0;
}

sockaddr_in6 any_address(std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  return address;
}

sockaddr_in any_address_v4(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  return address;
}

// 0, or why nobody can listen there. A machine without IPv6 is asked for IPv4.
int try_to_bind(std::uint16_t port, FileDescriptor& fd) {
  fd = FileDescriptor(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool v6 = static_cast<bool>(fd);
  if (!v6) fd = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in6 a6 = any_address(port);
  const sockaddr_in a4 = any_address_v4(port);
  const auto* address = v6 ? reinterpret_cast<const sockaddr*>(&a6) : reinterpret_cast<const sockaddr*>(&a4);
  if (::bind(fd.get(), address, v6 ? sizeof a6 : sizeof a4) != 0) return errno;
  return ::listen(fd.get(), 1) == 0 ? 0 : errno;
}

}  // namespace

std::string endpoint_name(const std::string& host, std::uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

void require_free_port(const std::string& host, std::uint16_t port) {
  FileDescriptor fd;
  const int problem = try_to_bind(port, fd);
  if (problem == 0) return;
  const std::string where = "cannot serve the job's store at " + endpoint_name(host, port) + ": ";
  if (problem == EADDRINUSE) {
    throw Error(ErrorCode::kIo, where + "port " + std::to_string(port) + " is in use by another program",
                "end that program, or choose another port for all ranks with MASTER_PORT or --master_port");
  }
  throw Error(ErrorCode::kIo, where + errno_text(problem), "choose another port with MASTER_PORT");
}

std::uint16_t pick_free_port() {
  FileDescriptor fd;
  const int problem = try_to_bind(0, fd);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (problem != 0 || ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    throw Error(ErrorCode::kIo, "no free port on this machine: " + errno_text(problem ? problem : errno));
  }
  // The port lies at the same place for both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

void wait_for_listener(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const AddressList addresses = resolve(host, port);
  while (true) {
    for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
      if (accepts_connections(*a)) return;
    }
    if (std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw Error(ErrorCode::kTimeout,
              "rank 0 did not come: nobody serves the job's store at " + endpoint_name(host, port) +
                  " within " + name_duration(timeout),
              "start rank 0 there, or correct MASTER_ADDR and MASTER_PORT");
}

std::string local_address_towards(const std::string& host, std::uint16_t port) {
  const AddressList addresses = resolve(host, port);
  int problem = EADDRNOTAVAIL;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    const FileDescriptor fd(::socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage local{};
    socklen_t size = sizeof local;
    std::array<char, NI_MAXHOST> text{};
    if (fd && ::connect(fd.get(), a->ai_addr, a->ai_addrlen) == 0 &&
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&local), size, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      return text.data();
    }
    problem = errno;
  }
  throw Error(ErrorCode::kIo, "no route leads to MASTER_ADDR '" + host + "': " + errno_text(problem),
              "name this machine's interface in GLOO_SOCKET_IFNAME");
}

}  // namespace ranklog
