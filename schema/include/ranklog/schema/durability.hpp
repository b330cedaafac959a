#pragma once
// How a rank file is kept safe on the file system where it lies.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ranklog {

// SQLite's, as far as a crash in mid-commit leaves the file whole.
enum class JournalMode : std::uint8_t {
  kWal,       // needs memory that all processes on the file share
  kPersist,   // a rollback journal that stays: fewest changes to the folder
  kTruncate,  // one that is cut to nothing
  kDelete,    // one that is created and removed for each commit
};

// "wal", "persist", "truncate", "delete".
[[nodiscard]] std::string_view to_string(JournalMode mode) noexcept;
[[nodiscard]] std::optional<JournalMode> parse_journal_mode(std::string_view text) noexcept;

struct Durability {
  JournalMode journal = JournalMode::kWal;
  // Whether SQLite locks the file. False where locks are refused or hang: the writer is the only one all the
  // same, because the file was created exclusively, but a reader may meet a commit half done and must look
  // again.
  bool locks = true;
  std::string tail;         // "mapped" or "append"
  std::string file_system;  // "ext4"
  std::string reason;       // why this mode, for a person
};

// The JSON object that `meta` holds under the name `durability`.
[[nodiscard]] std::string to_json(const Durability& durability);
// Empty for anything else.
[[nodiscard]] std::optional<Durability> parse_durability(std::string_view json);

}  // namespace ranklog
