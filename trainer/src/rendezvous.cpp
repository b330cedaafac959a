#include <charconv>

#include "ranklog/trainer/c10d_communicator.hpp"

namespace ranklog {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& value, const std::string& expected) {
  throw Error(ErrorCode::kUsage, name + "='" + value + "' is not " + expected);
}

std::int64_t parse_number(const std::string& name, const std::string& text, std::int64_t low,
                          std::int64_t high, const std::string& expected) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stop != end || value < low || value > high) refuse(name, text, expected);
  return value;
}

std::string require(const EnvLookup& environment, const char* name, const Place& place) {
  if (auto value = environment(name); value && !value->empty()) return *value;
  throw Error(ErrorCode::kUsage,
              std::string(name) + " is not set, and a job of " + std::to_string(place.world_size) +
                  " ranks needs it to meet",
              "set MASTER_ADDR and MASTER_PORT to rank 0's address and a free port there, the same on every "
              "rank, or start with --nproc_per_node");
}

}  // namespace

Rendezvous read_rendezvous(const Place& place, const EnvLookup& environment) {
  Rendezvous r;
  r.rank = place.rank;
  r.size = place.world_size;
  if (r.size == 1) return r;
  r.master_addr = require(environment, "MASTER_ADDR", place);
  r.master_port = static_cast<std::uint16_t>(parse_number(
      "MASTER_PORT", require(environment, "MASTER_PORT", place), 1, 65535, "a port (1 to 65535)"));
  const std::string agent = environment("TORCHELASTIC_USE_AGENT_STORE").value_or("");
  r.agent_serves_store = agent == "True" || agent == "true" || agent == "1";
  r.interface = environment("GLOO_SOCKET_IFNAME").value_or("");
  return r;
}

}  // namespace ranklog
