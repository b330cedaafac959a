#pragma once
// What stands behind Writer.

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "core.hpp"
#include "probes.hpp"
#include "ranklog/writer/writer.hpp"

namespace ranklog {

struct Writer::Impl {
  Identity identity;
  std::filesystem::path path, folder;
  std::shared_ptr<writer::Core> core;  // empty if logging is off
  std::jthread thread;
  std::optional<writer::Probes> probes;

  std::mutex finish_mutex;
  bool finish_tried = false;        // guarded by finish_mutex
  std::optional<Outcome> finished;  // guarded by finish_mutex; empty until the thread has stopped

  [[nodiscard]] bool in_child() const noexcept { return core && core->fork.in_child(); }
  // What a call returns that does nothing; empty if it may go on.
  [[nodiscard]] std::optional<LogStatus> refusal() const noexcept {
    if (!core) return LogStatus::kDisabled;
    if (core->fork.in_child()) return LogStatus::kClosed;
    return std::nullopt;
  }

  Outcome end(const std::optional<writer::EndRecord>& record, std::chrono::milliseconds limit);
  ~Impl();
};

}  // namespace ranklog
