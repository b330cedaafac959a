#pragma once
// One file of the tail (FORMAT.md, "Tail"), from its creation to its removal: where its bytes are held in
// memory, and how they get to the device.
//
// In mode kMapped the memory is the file: space reserved on the device and mapped, so that a store is all
// that a record needs to survive the process. In mode kAppend the memory is the process's own, and write()
// takes each record to the file. A mapping that cannot be had (no space, a limit on file sizes) makes a file
// of mode kAppend.
//
// Threads: write() by any; sync() and remove() by one at a time.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>

#include "disk.hpp"
#include "file_system.hpp"

namespace ranklog::writer {

// Zeroed bytes of this process, or a mapping.
class TailMemory {
 public:
  TailMemory() = default;
  // Empty where memory is short.
  static TailMemory allocate(std::size_t bytes) noexcept;
  static TailMemory map(int fd, std::size_t bytes) noexcept;
  TailMemory(TailMemory&& other) noexcept { swap(other); }
  TailMemory& operator=(TailMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~TailMemory();

  [[nodiscard]] char* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool is_mapped() const noexcept { return mapped_; }

 private:
  void swap(TailMemory& other) noexcept;

  char* data_ = nullptr;
  std::size_t size_ = 0;
  bool mapped_ = false;
};

class TailFile {
 public:
  // Exclusively, with the header written. Empty if that fails, with the reason in `error`: an errno.
  static std::shared_ptr<TailFile> create(const std::filesystem::path& path, std::string_view header,
                                          TailMode mode, std::size_t capacity, int& error);

  [[nodiscard]] const TailMemory& memory() const noexcept { return memory_; }
  [[nodiscard]] bool is_mapped() const noexcept { return memory_.is_mapped(); }
  // `head` and then `payload` at `offset`. 0 or an errno, after which nothing more may be written.
  [[nodiscard]] int write(std::size_t offset, std::string_view head, std::string_view payload) const noexcept;
  // The same, of what does not stand in memory yet.
  [[nodiscard]] int put(std::size_t offset, std::string_view bytes) const noexcept;
  // What was stored or written before survives power loss afterwards. 0 or an errno.
  [[nodiscard]] int sync() noexcept;
  // So that stores behind `offset` do not fault; after each sync.
  void touch_ahead(std::size_t offset) const noexcept;
  void remove() noexcept;

  TailFile(std::filesystem::path path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

 private:
  [[nodiscard]] int sync_data() const noexcept;
  int start(std::string_view header, TailMode mode, std::size_t capacity) noexcept;

  const std::filesystem::path path_;
  Descriptor file_;  // closed where the mapping does all: a writer has few descriptors
  TailMemory memory_;
  bool entry_synced_ = false;
};

}  // namespace ranklog::writer
