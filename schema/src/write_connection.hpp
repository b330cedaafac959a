#pragma once
// The writer's one connection to its file, and the journal mode that works where the file lies.

#include <filesystem>

#include "ranklog/schema/durability.hpp"
#include "sqlite.hpp"

namespace ranklog {

// Of a file that is written: what the page cache and most disks write at once. SQLite makes two system calls
// or more a page. reclaim_space() has smaller ones where they are what takes the space.
inline constexpr const char* kPageSize = "PRAGMA page_size = 4096";

// Without SQLite's locks if `durability` says so. Throws Error (kIo).
[[nodiscard]] Connection connect_for_writing(const std::filesystem::path& path, const Durability& durability);

// Changing the mode needs the file for itself, and SQLite does not wait by itself for readers to leave. False
// if they have not within some seconds, or if SQLite answers with another mode.
[[nodiscard]] bool change_journal_mode(Connection& connection, JournalMode mode);

// Puts a file that has its tables into the mode that is wanted, by what SQLite then answers and does, or else
// into one with a rollback journal: slower, and as safe. Gives what it has come to; the connection may be a
// new one.
[[nodiscard]] Durability settle_journal_mode(Connection& connection, const std::filesystem::path& path,
                                             const Durability& wanted);

}  // namespace ranklog
