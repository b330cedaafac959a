#pragma once
// The few questions about addresses and ports that must be answered before c10d is asked to do anything:
// its own answers come late and name nobody.

#include <chrono>
#include <cstdint>
#include <string>

#include "ranklog/schema/error.hpp"

namespace ranklog {

// "127.0.0.1:29500", "[::1]:29500"
[[nodiscard]] std::string endpoint_name(const std::string& host, std::uint16_t port);

// Throws Error (kIo) naming address, port and remedy if nobody could listen on this port here.
void require_free_port(const std::string& host, std::uint16_t port);

// Returns once somebody accepts connections there. Throws Error (kTimeout) if nobody does within `timeout`.
void wait_for_listener(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout);

// The numeric address of this machine on the route to `host`: the one under which the ranks there can reach
// us. No packet is sent. Throws Error (kUsage) for a name that does not resolve, (kIo) where no route leads.
[[nodiscard]] std::string local_address_towards(const std::string& host, std::uint16_t port);

[[nodiscard]] bool is_loopback(const std::string& numeric_address);

// A numeric address of this machine that other hosts can reach, for where the route to `host` is the loopback
// (Debian's /etc/hosts gives a machine's own name 127.0.1.1). Throws Error (kIo) with the remedy if there is
// none to be found.
[[nodiscard]] std::string address_for_other_hosts(const std::string& host);

[[nodiscard]] std::string own_host_name();

}  // namespace ranklog
