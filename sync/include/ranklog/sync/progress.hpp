#pragma once
// What a push tells while it runs.

#include <cstdint>
#include <string>

namespace ranklog::sync {

// Threads: called from several at once. The default says nothing.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void expect_lines(std::uint64_t /*lines*/) {}
  virtual void expect_bytes(std::uint64_t /*bytes*/) {}   // of artifacts
  virtual void count_lines(std::uint64_t /*lines*/) {}    // confirmed or there already
  virtual void count_bytes(std::uint64_t /*bytes*/) {}    // of artifacts, sent
  virtual void run_began(const std::string& /*url*/) {}   // once the server has the run
  virtual void notice(const std::string& /*message*/) {}  // a retry and its reason
};

}  // namespace ranklog::sync
