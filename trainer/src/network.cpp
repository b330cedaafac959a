#include "network.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
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
  const Descriptor fd(
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
int try_to_bind(std::uint16_t port, Descriptor& fd) {
  fd = Descriptor(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool v6 = static_cast<bool>(fd);
  if (!v6) fd = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in6 a6 = any_address(port);
  const sockaddr_in a4 = any_address_v4(port);
  const auto* address = v6 ? reinterpret_cast<const sockaddr*>(&a6) : reinterpret_cast<const sockaddr*>(&a4);
  if (::bind(fd.get(), address, v6 ? sizeof a6 : sizeof a4) != 0) return errno;
  return ::listen(fd.get(), 1) == 0 ? 0 : errno;
}

std::optional<std::string> numeric_text(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int status = ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return status == 0 ? std::optional<std::string>(text.data()) : std::nullopt;
}

// From which of this machine's addresses packets there would come; empty and errno where no route leads.
std::optional<std::string> source_address(const addrinfo& towards) {
  const Descriptor fd(::socket(towards.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  auto* generic = reinterpret_cast<sockaddr*>(&local);
  if (!fd || ::connect(fd.get(), towards.ai_addr, towards.ai_addrlen) != 0 ||
      ::getsockname(fd.get(), generic, &size) != 0) {
    return std::nullopt;
  }
  return numeric_text(generic, size);
}

// For clusters without a route to the outside. Empty where there is more than one IPv4 address, or none.
std::optional<std::string> only_address_of_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::optional<std::string> only;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if ((entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (only) return std::nullopt;
    only = numeric_text(entry->ifa_addr, sizeof(sockaddr_in));
  }
  return only;
}

}  // namespace

std::string endpoint_name(const std::string& host, std::uint16_t port) {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

void require_free_port(const std::string& host, std::uint16_t port) {
  Descriptor fd;
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
  Descriptor fd;
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
    if (auto address = source_address(*a)) return *address;
    problem = errno;
  }
  throw Error(ErrorCode::kIo, "no route leads to MASTER_ADDR '" + host + "': " + errno_text(problem),
              "name this machine's interface in GLOO_SOCKET_IFNAME");
}

bool is_loopback(const std::string& numeric_address) {
  return numeric_address.starts_with("127.") || numeric_address == "::1" ||
         numeric_address.starts_with("::ffff:127.");
}

std::string address_for_other_hosts(const std::string& host) {
  // Addresses of documentation (RFC 5737, 3849), which belong to nobody: the way there is the way out.
  for (const char* outside : {"192.0.2.1", "2001:db8::1"}) {
    const AddressList addresses = resolve(outside, 9);
    const auto address = source_address(*addresses);
    if (address && !is_loopback(*address)) return *address;
  }
  if (const auto only = only_address_of_interfaces()) return *only;
  throw Error(
      ErrorCode::kIo,
      "MASTER_ADDR '" + host + "' leads to this machine's loopback, where other hosts cannot reach it",
      "name the interface towards the other hosts in GLOO_SOCKET_IFNAME, or correct /etc/hosts");
}

std::string own_host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

}  // namespace ranklog
