#pragma once
// Between a process whose console is captured and its relay (console_relay.hpp), which is built with it: over
// two pipes, in this machine's byte order.

#include <cstdint>
#include <type_traits>

namespace ranklog::writer {

// Descriptors of the relay.
inline constexpr int kRelayControl = 0;  // reads requests
inline constexpr int kRelayStdout = 1;   // where the process's stdout and stderr went before
inline constexpr int kRelayStderr = 2;
inline constexpr int kRelaySources = 3;  // and 4: what the process prints now
inline constexpr int kRelayRows = 5;     // writes lines
inline constexpr int kRelayFirstUnused = 6;

// What a source carries, a letter of the relay's second argument each.
inline constexpr char kStdoutOnly = 'o';
inline constexpr char kStderrOnly = 'e';
inline constexpr char kBoth = 'b';  // they went to one place: their order is kept, and all counts as stdout
inline constexpr char kNoSource = '-';

enum class RelayRequest : std::uint32_t {
  kLogged = 1,  // value: messages received so far, whose lines survive the process
  kFlush = 2,   // value: a number that comes back behind all lines of what was printed before
  kEnd = 3,     // nothing more is recorded; what is printed still passes through
};
struct RelayControl {
  RelayRequest request{};
  std::uint32_t zero = 0;
  std::uint64_t value = 0;
};

enum class RelayMessage : std::uint8_t { kLine = 1, kFlushed = 2 };
struct RelayRow {  // then the text
  std::uint32_t text_bytes = 0;
  RelayMessage kind{};
  std::uint8_t from_stderr = 0;
  std::uint16_t zero = 0;
  std::int64_t number = 0;  // of the line, or of the flush
  std::int64_t time_ns = 0;
};
static_assert(std::is_trivially_copyable_v<RelayControl> && std::is_trivially_copyable_v<RelayRow>);

}  // namespace ranklog::writer
