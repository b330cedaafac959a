#pragma once
// What W&B takes as names (protocol page 2.3, 2.4, 11).

#include <string>

namespace ranklog::sync {

// Each throws Error (kUsage) that says what is wrong with the name and what to do.
void check_project(const std::string& project);
void check_run_id(const std::string& run_id);

[[nodiscard]] bool is_tag(const std::string& tag);

// The name, or its first 128 characters.
[[nodiscard]] std::string cut_display_name(const std::string& name);

}  // namespace ranklog::sync
