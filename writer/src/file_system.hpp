#pragma once
// What the file system under a folder lets the tail do.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace ranklog::writer {

enum class TailMode : std::uint8_t {
  kMapped,  // into a shared mapping of space reserved beforehand: no system call a row
  kAppend,  // one small write a row
};

struct TailChoice {
  TailMode mode = TailMode::kAppend;
  std::string reason;  // for a person: "ext4: space can be reserved and mapped"
};

// `forced`: RANKLOG_TAIL, "mapped" or "append"; throws Error (kUsage) for another word. In doubt: kAppend,
// which is right everywhere.
[[nodiscard]] TailChoice choose_tail_mode(const std::filesystem::path& folder,
                                          const std::optional<std::string>& forced);

}  // namespace ranklog::writer
