#pragma once
// What tests of failing disks share: a log that fills its small memory soon, and what became of each row.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "helpers.hpp"

namespace ranklog::test {

// Logs rows that do not compress, and remembers what became of them.
class Filler {
 public:
  explicit Filler(Writer& log) : log_(log) {}

  LogStatus log_one() {
    std::string text;
    for (int i = 0; i < 500; ++i)
      text += std::to_string(state_ = state_ * 6364136223846793005U + 1442695040888963407U);
    const auto status = log_.log(number_, {{"i", number_}, {"text", text.substr(0, 2000)}});
    if (status == LogStatus::kOk || status == LogStatus::kInMemory) kept_.push_back(number_);
    if (status == LogStatus::kOk) safe_.push_back(number_);
    if (status == LogStatus::kDropped) ++dropped_;
    ++number_;
    return status;
  }
  // Until the disk has no room: kInMemory, or kDropped where the memory is full before the reserved tail is.
  bool log_until_full() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      if (log_one() != LogStatus::kOk) return true;
    }
    return false;
  }
  // Until log() returns `wanted`, at most 20 s.
  bool log_until(LogStatus wanted, std::chrono::milliseconds pause = {}) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      if (log_one() == wanted) return true;
      std::this_thread::sleep_for(pause);
    }
    return false;
  }

  [[nodiscard]] const std::vector<std::int64_t>& kept() const { return kept_; }
  [[nodiscard]] const std::vector<std::int64_t>& safe() const { return safe_; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  Writer& log_;
  std::uint64_t state_ = 1;
  std::int64_t number_ = 0;
  std::vector<std::int64_t> kept_, safe_;
  std::uint64_t dropped_ = 0;
};

inline std::uint64_t rows_in_drop_events(const std::filesystem::path& path) {
  std::uint64_t rows = 0;
  for (const auto& event : RankFile::open(path).events()) {
    if (event.kind == "drop") rows += std::stoull(event.json.substr(event.json.find(':') + 1));
  }
  return rows;
}

inline Options small_options(const std::filesystem::path& folder) {
  auto options = options_in(folder);
  options.queue_bytes = std::size_t{512} << 10;
  options.seal_interval = std::chrono::milliseconds(100);
  options.sync_interval = std::chrono::milliseconds(50);
  return options;
}

}  // namespace ranklog::test
