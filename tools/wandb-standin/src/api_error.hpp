#pragma once
// A refusal that is answered to the client as W&B answers it: an HTTP status and a message.

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace ranklog::standin {

using Json = nlohmann::json;

class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& message) : std::runtime_error(message), status_(status) {}

  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  int status_;
};

}  // namespace ranklog::standin
