#pragma once
// Masks secrets before they reach the file.
//
// A text is masked if its name is a secret's (api_key, password, token, secret, authorization ...), or if its
// name ends in one and the text looks like a key. So hf_token=hf_x8Kd... is masked, and pad_token=<pad> and
// max_tokens=512 are not.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ranklog::writer {

inline constexpr std::string_view kMask = "***";

[[nodiscard]] bool is_secret(std::string_view name, std::string_view text);

// Masks strings anywhere inside; `name` is the key that the value stands under.
void mask_secrets(std::string_view name, nlohmann::ordered_json& value);

// --password=x, --password x, password=x and "Authorization: x".
[[nodiscard]] std::vector<std::string> mask_arguments(std::vector<std::string> arguments);

// Without user name and password: https://user:token@host/path becomes https://host/path.
[[nodiscard]] std::string strip_credentials(std::string_view url);

}  // namespace ranklog::writer
