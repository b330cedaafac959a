#pragma once
// One file of the tail (FORMAT.md, "Tail"), from its creation to its removal.
//
// In mode kMapped its first part is reserved on the device and mapped, so that a record is a copy in memory;
// what does not fit there is written, as everything is in mode kAppend. A mapping that can no longer be had
// (no space, a limit on file sizes) makes a segment of mode kAppend.
//
// Threads: append() by one at a time (the recorder's lock); sync() and remove() by the background thread,
// also while another appends.

#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string_view>

#include "disk.hpp"
#include "file_system.hpp"

namespace ranklog::writer {

class TailSegment {
 public:
  // Exclusively, header included. Empty if that fails, with the reason in `error`: an errno.
  static std::shared_ptr<TailSegment> create(const std::filesystem::path& path, std::string_view header,
                                             TailMode mode, int& error);

  // 0, or an errno after which the file reads as it did before.
  [[nodiscard]] int append(std::string_view records) noexcept;
  // What was appended before survives power loss afterwards. 0 or an errno.
  [[nodiscard]] int sync() noexcept;
  [[nodiscard]] bool needs_sync() const noexcept { return unsynced_.load(std::memory_order_relaxed); }
  void remove() noexcept;

  TailSegment(std::filesystem::path path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  ~TailSegment();
  TailSegment(const TailSegment&) = delete;
  TailSegment& operator=(const TailSegment&) = delete;

 private:
  void map() noexcept;
  [[nodiscard]] int write(std::string_view records, std::size_t at) noexcept;
  void touch_ahead() const noexcept;

  const std::filesystem::path path_;
  const Descriptor file_;
  char* map_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::atomic<std::size_t> size_{0};
  std::atomic<bool> unsynced_{true};
  bool entry_synced_ = false;  // the background thread's
};

}  // namespace ranklog::writer
