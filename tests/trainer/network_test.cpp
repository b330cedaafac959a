#include "network.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <optional>
#include <thread>

#include "file_descriptor.hpp"
#include "ranklog/trainer/c10d_communicator.hpp"

namespace ranklog::test {
namespace {

using namespace std::chrono_literals;

// Listens on 127.0.0.1 at a port that the system chose.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(fd_.get(), generic, size), 0);
    EXPECT_EQ(::listen(fd_.get(), 8), 0);
    EXPECT_EQ(::getsockname(fd_.get(), generic, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  Descriptor fd_;
  std::uint16_t port_ = 0;
};

std::string message_of(const std::function<void()>& call, ErrorCode expected) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), expected);
    return e.what();
  }
  return "nothing was refused";
}

TEST(Network, APortInUseIsNamedWithAddressAndRemedy) {
  const Listener listener;
  const std::string port = std::to_string(listener.port());
  const std::string what =
      message_of([&] { require_free_port("10.1.2.3", listener.port()); }, ErrorCode::kIo);
  EXPECT_NE(what.find("10.1.2.3:" + port), std::string::npos) << what;
  EXPECT_NE(what.find("is in use"), std::string::npos) << what;
  EXPECT_NE(what.find("MASTER_PORT"), std::string::npos) << what;
}

TEST(Network, AFreePortIsFree) {
  require_free_port("127.0.0.1", pick_free_port());
}

TEST(Network, AListenerIsFoundEvenIfItComesLate) {
  const std::uint16_t port = pick_free_port();
  std::optional<std::string> problem;
  std::thread waiting([&] {
    try {
      wait_for_listener("127.0.0.1", port, 30s);
    } catch (const std::exception& e) {
      problem = e.what();
    }
  });
  std::this_thread::sleep_for(200ms);
  const Descriptor fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(fd.get(), 8), 0);
  waiting.join();
  EXPECT_EQ(problem, std::nullopt);
}

TEST(Network, AHostThatDoesNotResolveIsNamed) {
  const std::string what =
      message_of([] { wait_for_listener("no-such-host.invalid", 29500, 1s); }, ErrorCode::kUsage);
  EXPECT_NE(what.find("no-such-host.invalid"), std::string::npos) << what;
}

TEST(Network, TheAddressTowardsLoopbackIsLoopback) {
  EXPECT_EQ(local_address_towards("127.0.0.1", 29500), "127.0.0.1");
}

TEST(Network, Ipv6AddressesAreWrittenInBrackets) {
  EXPECT_EQ(endpoint_name("::1", 29500), "[::1]:29500");
  EXPECT_EQ(endpoint_name("node-3", 29500), "node-3:29500");
}

TEST(Network, LoopbackIsKnownByItsAddress) {
  for (const char* address : {"127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_loopback(address)) << address;
  }
  for (const char* address : {"10.0.0.127", "192.168.127.1", "fe80::1", "::"}) {
    EXPECT_FALSE(is_loopback(address)) << address;
  }
}

// Debian's /etc/hosts gives the machine's own name 127.0.1.1: no address to tell other hosts.
TEST(Network, OtherHostsAreNeverToldTheLoopback) {
  std::string address;
  try {
    address = address_for_other_hosts("node-0");
  } catch (const Error& e) {  // a machine without any network
    EXPECT_NE(std::string(e.what()).find("GLOO_SOCKET_IFNAME"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("node-0"), std::string::npos) << e.what();
    return;
  }
  EXPECT_FALSE(is_loopback(address)) << address;
}

}  // namespace
}  // namespace ranklog::test
