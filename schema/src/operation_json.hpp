#pragma once
// Operations as JSON text, the form that they have in the tail (FORMAT.md, "Tail").

#include <string>
#include <string_view>

#include "ranklog/schema/operation.hpp"

namespace ranklog {

// Without sequence and time. Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string operation_to_json(const OperationBody& body);

// `index` counts the alternatives of OperationBody. Throws Error (kDamaged).
[[nodiscard]] OperationBody operation_from_json(std::size_t index, std::string_view json);

}  // namespace ranklog
