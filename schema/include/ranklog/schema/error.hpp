#pragma once
// The one error type of ranklog, and the exit statuses that every program maps it to.

#include <cstdint>
#include <stdexcept>
#include <string>

namespace ranklog {

enum class ErrorCode : std::uint8_t {
  kUsage,         // a flag, variable or argument is wrong or contradicts another
  kNotFound,      // a file, folder, run or server object that was asked for does not exist
  kIo,            // the operating system refused (permission, space, device)
  kNotOurs,       // a file that is not a ranklog file
  kVersion,       // a ranklog file of a version that this program does not read
  kDamaged,       // a ranklog file (or a part of it) that cannot be trusted
  kBusy,          // somebody else owns it; the message names the owner
  kUnauthorized,  // no credentials, or the server refused them
  kServer,        // a permanent refusal by the server
  kTemporary,     // a passing fault (network, rate limit, server trouble): safe to run again
  kTimeout,       // a peer did not come in time; the message names it
  kInterrupted,   // stopped by a signal, state saved
};

// Thrown when ranklog cannot do what was asked. what() is one sentence for a person: it names the thing, the
// place and, where a person can act, the remedy. It never holds a secret.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  // Appends "; <hint>" to the message.
  Error(ErrorCode code, const std::string& message, const std::string& hint)
      : std::runtime_error(message + "; " + hint), code_(code) {}

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

// Exit statuses shared by all programs. Frozen: scripts rely on them. A program stopped by signal s exits
// with 128 + s (130 Ctrl-C, 143 SIGTERM) after saving its state.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;        // something failed, was skipped or does not match ("partial")
inline constexpr int kExitUsage = 2;         // wrong flags, variables or input
inline constexpr int kExitUnauthorized = 4;  // no or refused credentials
inline constexpr int kExitDamaged = 5;       // local data damaged, and nothing else wrong
inline constexpr int kExitTemporary = 75;    // passing faults, or preempted: safe to run again (EX_TEMPFAIL)

[[nodiscard]] int exit_status(ErrorCode code) noexcept;

// "No space left on device" for an errno value.
[[nodiscard]] std::string errno_text(int error_number);

}  // namespace ranklog
