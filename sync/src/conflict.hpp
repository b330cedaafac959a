#pragma once
// What keeps a run from going on under its id, and what a user can do about it.

#include <string>

#include "ranklog/schema/error.hpp"

namespace ranklog::sync {

// The run at the server is not what the files make, and only another id helps.
class ConflictError : public Error {
 public:
  explicit ConflictError(const std::string& message, ErrorCode code = ErrorCode::kServer)
      : Error(
            code, message,
            "--new-generation uploads it as a new run beside the old one, --id under an id of your choice") {}
};

}  // namespace ranklog::sync
