#pragma once
// Who may use GraphQL and file_stream.

#include <string>

namespace ranklog::standin {

// The shape that W&B's own clients accept: three non-empty dotted segments, or 40 or more characters of
// [A-Za-z0-9_-] after an optional "<prefix>-".
[[nodiscard]] bool has_key_shape(const std::string& key);

// Throws ApiError(401) unless the header is Basic, for the user "api", with `expected` as the password, or
// with any key of valid shape if `expected` is empty.
void check_authorization(const std::string& header, const std::string& expected);

// What a log may say of the header: scheme, user, and the key's length, never the key.
[[nodiscard]] std::string describe_authorization(const std::string& header);

}  // namespace ranklog::standin
