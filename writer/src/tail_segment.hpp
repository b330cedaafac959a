#pragma once
// One append-only file of the tail (FORMAT.md, "Tail"), from its creation to its removal.
//
// Threads: append() by one at a time (the recorder's lock); sync() and remove() by the background thread,
// also while another appends.

#include <atomic>
#include <filesystem>
#include <memory>
#include <string_view>

#include "disk.hpp"

namespace ranklog::writer {

class TailSegment {
 public:
  // Exclusively, header included. Empty if that fails, with the reason in `error`: an errno.
  static std::shared_ptr<TailSegment> create(const std::filesystem::path& path, std::string_view header,
                                             int& error);

  // One write(2). 0, or an errno after which the file ends where it did before.
  [[nodiscard]] int append(std::string_view records) noexcept;
  // What was appended before survives power loss afterwards. 0 or an errno.
  [[nodiscard]] int sync() noexcept;
  [[nodiscard]] bool needs_sync() const noexcept { return unsynced_.load(std::memory_order_relaxed); }
  void remove() noexcept;

  TailSegment(std::filesystem::path path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

 private:
  const std::filesystem::path path_;
  const Descriptor file_;
  off_t size_ = 0;
  std::atomic<bool> unsynced_{true};
  bool entry_synced_ = false;  // the background thread's
};

}  // namespace ranklog::writer
