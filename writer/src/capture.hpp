#pragma once
// Files of artifacts, media and runs: brought into the experiment's folder at once, digested later.

#include <filesystem>
#include <optional>
#include <string>

#include "ranklog/schema/digest.hpp"
#include "ranklog/writer/writer.hpp"

namespace ranklog::writer {

// Relative to the experiment's folder, if the file lies inside it.
[[nodiscard]] std::optional<std::string> path_inside(const std::filesystem::path& folder,
                                                     const std::filesystem::path& file);

struct StoredFile {
  std::string path;  // relative to the experiment's folder
  FileDigests digests;
};

// What a file held when it was taken: later changes of the source change nothing. A file inside the
// experiment's folder is left where it is, and must not change. One that is not stored is removed.
class TakenFile {
 public:
  // On the caller's thread: shares blocks, links or copies. Throws Error (kNotFound, kIo; kUsage for a
  // folder).
  TakenFile(std::filesystem::path folder, const std::filesystem::path& file, Capture how);
  TakenFile(TakenFile&& other) noexcept;
  TakenFile& operator=(TakenFile&&) = delete;
  ~TakenFile();

  // Any thread, once: digests the bytes, makes them durable as files/<sha256>, each content once. Throws
  // Error (kIo).
  [[nodiscard]] StoredFile store();

 private:
  std::filesystem::path folder_;
  std::filesystem::path path_;
  bool durable_ = false;
  bool temporary_ = false;
};

}  // namespace ranklog::writer
