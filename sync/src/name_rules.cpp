#include "name_rules.hpp"

#include <algorithm>
#include <string_view>

#include "ranklog/schema/error.hpp"

namespace ranklog::sync {
namespace {

constexpr std::size_t kLongestName = 128;
constexpr std::size_t kLongestTag = 64;

// W&B counts characters: bytes that do not continue one.
bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

std::size_t length_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

void check_characters(const std::string& what, const std::string& name, std::string_view forbidden,
                      const std::string& remedy) {
  const std::size_t at = name.find_first_of(forbidden);
  if (at == std::string::npos) return;
  throw Error(ErrorCode::kUsage,
              "W&B takes no " + what + " '" + name + "', for it holds '" + name.substr(at, 1) + "'", remedy);
}

}  // namespace

void check_project(const std::string& project) {
  const std::string remedy = "name another with -p/--project";
  check_characters("project named", project, "/\\#?%:", remedy);
  if (!project.empty() && length_of(project) <= kLongestName) return;
  throw Error(ErrorCode::kUsage, "W&B takes names of projects of 1 to 128 characters, not '" + project + "'",
              remedy);
}

void check_run_id(const std::string& run_id) {
  const std::string remedy = "name another with --id";
  check_characters("run id", run_id, "/\\#?%:;,'", remedy);
  constexpr std::string_view kBlank = " \t\r\n";
  const bool padded = run_id.empty() || kBlank.find(run_id.front()) != std::string_view::npos ||
                      kBlank.find(run_id.back()) != std::string_view::npos;
  if (padded) {
    throw Error(ErrorCode::kUsage,
                "W&B takes no run id that is empty or begins or ends with a blank: '" + run_id + "'", remedy);
  }
}

bool is_tag(const std::string& tag) {
  return !tag.empty() && length_of(tag) <= kLongestTag;
}

std::string cut_display_name(const std::string& name) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (begins_character(name[i]) && characters++ == kLongestName) return name.substr(0, i);
  }
  return name;
}

}  // namespace ranklog::sync
