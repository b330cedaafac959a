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

// Masks texts anywhere inside, and numbers and bools under a name that stands for nothing but a secret;
// `name` is the key that the value stands under.
void mask_secrets(std::string_view name, nlohmann::ordered_json& value);

// --password=x, --password x, password=x, "Authorization: x" and https://user:x@host.
[[nodiscard]] std::vector<std::string> mask_arguments(std::vector<std::string> arguments);

// The secrets in an environment of "NAME=text" lines that ends with a null pointer, the longest first. Texts
// of fewer than 6 bytes are left out: they may be parts of words.
[[nodiscard]] std::vector<std::string> secrets_of(char** environment);
// `text` with every occurrence of a secret masked.
[[nodiscard]] std::string mask_texts(std::string text, const std::vector<std::string>& secrets);

// Addresses without user name and password: https://user:token@host/path becomes https://host/path.
[[nodiscard]] std::string strip_credentials(std::string_view text);

}  // namespace ranklog::writer
