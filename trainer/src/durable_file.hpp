#pragma once
// A file that appears under its name whole or not at all, also after power loss.

#include <cstddef>
#include <filesystem>
#include <string>

#include "file_descriptor.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog {

// Every failure is an Error (kIo) that names the file and the operating system's reason.
class DurableFile {
 public:
  explicit DurableFile(std::filesystem::path path);  // writes to <path>.tmp
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;
  ~DurableFile();  // removes the temporary file if commit() was not reached

  void write(const void* data, std::size_t bytes);
  void commit();  // sync, close, rename, sync the folder

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  Descriptor fd_;
  bool committed_ = false;
};

}  // namespace ranklog
