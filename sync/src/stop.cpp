#include "ranklog/sync/stop.hpp"

#include "ranklog/schema/error.hpp"

namespace ranklog::sync {

void throw_if_stopped(const StopFlag& stop) {
  if (stop.count() == 0) return;
  throw Error(ErrorCode::kInterrupted, "stopped; what the server has confirmed is recorded");
}

}  // namespace ranklog::sync
