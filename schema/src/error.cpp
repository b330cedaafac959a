#include "ranklog/schema/error.hpp"

#include <cstring>
#include <system_error>

namespace ranklog {

int exit_status(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kUsage:
      return kExitUsage;
    case ErrorCode::kUnauthorized:
      return kExitUnauthorized;
    case ErrorCode::kNotOurs:
    case ErrorCode::kVersion:
    case ErrorCode::kDamaged:
      return kExitDamaged;
    case ErrorCode::kTemporary:
      return kExitTemporary;
    case ErrorCode::kInterrupted:
      return 130;
    case ErrorCode::kNotFound:
    case ErrorCode::kIo:
    case ErrorCode::kBusy:
    case ErrorCode::kServer:
    case ErrorCode::kTimeout:
      return kExitFailed;
  }
  return kExitFailed;
}

std::string errno_text(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace ranklog
