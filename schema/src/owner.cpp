#include "ranklog/schema/owner.hpp"

#include "process.hpp"
#include "ranklog/schema/time.hpp"

namespace ranklog {
namespace {

constexpr std::int64_t kSilenceNs = 600'000'000'000;

const char* words_of(OwnerState state) {
  switch (state) {
    case OwnerState::kEnded:
      return "which has ended it";
    case OwnerState::kGone:
      return "which is gone";
    case OwnerState::kRunning:
      return "still running";
    case OwnerState::kSilent:
      return "silent for ten minutes and more";
  }
  return "";
}

}  // namespace

OwnerState owner_state(const FileInfo& info, std::int64_t now_ns) {
  const Identity& owner = info.identity;
  if (info.end_time_ns) return OwnerState::kEnded;
  if (is_gone_from_this_host(owner.host, owner.pid, owner.pid_start_ticks)) return OwnerState::kGone;
  return since(info.heartbeat_ns, now_ns) > kSilenceNs ? OwnerState::kSilent : OwnerState::kRunning;
}

std::string describe_owner(const FileInfo& info, std::int64_t now_ns) {
  return "pid " + std::to_string(info.identity.pid) + " on " + info.identity.host + ", started " +
         rfc3339(info.start_time_ns) + ", " + words_of(owner_state(info, now_ns));
}

}  // namespace ranklog
