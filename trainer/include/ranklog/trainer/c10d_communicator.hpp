#pragma once
// Ranks that are processes on one or many hosts: a TCPStore at MASTER_ADDR:MASTER_PORT, and Gloo.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ranklog/trainer/communicator.hpp"
#include "ranklog/writer/launch.hpp"

namespace ranklog {

// Where and how the ranks meet.
struct Rendezvous {
  int rank = 0;
  int size = 1;
  std::string master_addr;
  std::uint16_t master_port = 0;
  // torchrun's agent already serves the store, so that rank 0 is a client like the others. Needs LibTorch 2.
  bool agent_serves_store = false;
  // Interface for Gloo (GLOO_SOCKET_IFNAME); empty: the address of the route to master_addr.
  std::string interface;
  // For each step of meeting, every barrier and every collective.
  std::chrono::milliseconds timeout{std::chrono::seconds(300)};

  // Called on a thread of its own when another rank has failed and this one has not noticed for `patience`
  // because it is stuck in a collective or in its own work. Meant to end the process.
  std::function<void(const std::string& why)> when_stuck;
  std::chrono::milliseconds patience{5000};
};

// Reads MASTER_ADDR, MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE and GLOO_SOCKET_IFNAME.
// Throws Error (kUsage) naming the variable that is missing or not understood.
[[nodiscard]] Rendezvous read_rendezvous(const Place& place, const EnvLookup& environment);

// Throws Error: kIo (the port is taken, with address and remedy), kTimeout (naming the ranks that never
// came), kUsage (an agent's store with LibTorch 1.13).
[[nodiscard]] std::unique_ptr<Communicator> connect(const Rendezvous& rendezvous);

// A port that was free on this machine a moment ago: for MASTER_PORT of a job on one machine.
[[nodiscard]] std::uint16_t pick_free_port();

}  // namespace ranklog
