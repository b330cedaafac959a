#pragma once
// Rows of one rank file belong to one of several streams, which share its keys and nothing else.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ranklog {

// Frozen: these numbers are on disk (FORMAT.md, "Streams").
enum class Stream : std::uint8_t {
  kHistory = 0,  // what log() was given
  kSystem = 1,   // machine and process metrics, sampled in the background; step 0
  kConsole = 2,  // lines of stdout and stderr; step: the line's number, from 0
};

inline constexpr std::array kStreams = {Stream::kHistory, Stream::kSystem, Stream::kConsole};

[[nodiscard]] constexpr std::size_t index_of(Stream stream) noexcept {
  return static_cast<std::size_t>(stream);
}
[[nodiscard]] constexpr bool is_known(Stream stream) noexcept {
  return index_of(stream) < kStreams.size();
}
[[nodiscard]] std::string_view to_string(Stream stream) noexcept;  // "history", "system", "console"

// The keys of console rows: a string, and true for a line of stderr, false for one of stdout. A later row of
// the same line number replaces the earlier one, as a progress bar replaces itself.
inline constexpr std::string_view kConsoleText = "text";
inline constexpr std::string_view kConsoleIsStderr = "stderr";

}  // namespace ranklog
