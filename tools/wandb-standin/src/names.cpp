#include "names.hpp"

#include <string_view>

namespace ranklog::standin {
namespace {

constexpr std::size_t kMaxName = 128;
constexpr std::size_t kMaxTag = 64;

// The length as W&B counts it: code points, not bytes.
std::size_t length(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

void check(const std::string& what, const std::string& name, std::string_view forbidden) {
  if (name.empty()) throw ApiError(400, "invalid " + what + ": it is empty");
  if (length(name) > kMaxName) throw ApiError(400, "invalid " + what + ": more than 128 characters");
  const auto at = name.find_first_of(forbidden);
  if (at != std::string::npos) {
    throw ApiError(400, "invalid " + what + " \"" + name + "\": contains '" + name[at] + "'");
  }
}

}  // namespace

void check_project_name(const std::string& name) {
  check("project name", name, "/\\#?%:");
}

void check_run_name(const std::string& name) {
  check("run id", name, "/\\#?%:;,'");
}

void check_display_name(const std::string& name) {
  check("display name", name, "");
}

void check_tags(const Json& tags) {
  for (const Json& tag : tags) {
    const std::size_t size = tag.is_string() ? length(tag) : 0;
    if (size < 1 || size > kMaxTag) throw ApiError(400, "invalid tag " + tag.dump() + ": 1 to 64 characters");
  }
}

void check_artifact_name(const std::string& name) {
  check("artifact name", name, "/:");
}

void check_alias(const std::string& alias) {
  check("alias", alias, "/:");
}

}  // namespace ranklog::standin
