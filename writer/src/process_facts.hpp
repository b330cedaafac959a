#pragma once
// What the operating system and the working copy say about this process.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ranklog/schema/identity.hpp"

namespace ranklog::writer {

// Fills host, pid and its start, program, arguments (masked), git facts, libraries and host facts.
void describe_process(Identity& identity);

// JSON object: "os", "kernel", "architecture", "cpu_model" (texts), "cpu_count", "memory_bytes" (numbers), as
// far as they are known. Runs no program.
[[nodiscard]] std::string host_facts_json();

struct GitFacts {
  std::string commit;  // 40 hex digits; empty if unknown
  std::string remote;  // origin's address without credentials
};

// Reads .git in `folder` or the nearest one above it, without running git. Empty facts if there is none or it
// cannot be read.
[[nodiscard]] GitFacts read_git_facts(const std::filesystem::path& folder);

// `bytes` random bytes as hex digits; for names that must not collide.
[[nodiscard]] std::string random_hex(std::size_t bytes);
// Eight characters of [a-z0-9], as W&B names its runs.
[[nodiscard]] std::string random_run_id();

// When this process started; 0 if that cannot be told.
[[nodiscard]] std::int64_t process_start_ns();

}  // namespace ranklog::writer
