#pragma once
// Which names W&B accepts. Each throws ApiError(400) saying what is wrong.

#include <string>

#include "api_error.hpp"

namespace ranklog::standin {

void check_project_name(const std::string& name);
void check_run_name(const std::string& name);
void check_display_name(const std::string& name);
void check_tags(const Json& tags);
void check_artifact_name(const std::string& name);
void check_alias(const std::string& alias);

}  // namespace ranklog::standin
