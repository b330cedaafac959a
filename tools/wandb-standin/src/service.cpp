#include "service.hpp"

#include <algorithm>

#include "disk.hpp"
#include "file_stream.hpp"
#include "graphql_execute.hpp"
#include "schema.hpp"

namespace ranklog::standin {
namespace {

constexpr const char* kSettingsFile = "standin.json";

Json variables_of(const Json& request) {
  Json variables = request.value("variables", Json::object());
  if (variables.is_null()) return Json::object();
  if (!variables.is_object()) throw ApiError(400, "\"variables\" is not an object");
  return variables;
}

std::string operation_name_of(const Json& request) {
  if (!request.is_object()) return "";
  const Json name = request.value("operationName", Json(nullptr));
  return name.is_string() ? name.get<std::string>() : std::string();
}

}  // namespace

bool Settings::knows_entity(const std::string& entity) const {
  return entities.empty() || std::find(entities.begin(), entities.end(), entity) != entities.end();
}

Service::Service(const std::filesystem::path& folder, Settings given)
    : settings(std::move(given)), store(folder) {
  clock.set_offset(read_saved_settings(folder).clock_offset_ms);
  save_settings();
}

Json Service::graphql(const Json& request, const std::string& base_url) {
  if (!request.is_object() || !request.contains("query") || !request["query"].is_string()) {
    throw ApiError(400, "a GraphQL request is a JSON object with a text \"query\"");
  }
  const Document document = parse_document(request["query"].get_ref<const std::string&>());
  const Operation& operation = document.operation(operation_name_of(request));
  const Scope scope{*this, base_url};
  const ObjectPtr root = operation.kind == "mutation" ? mutation_root(scope) : query_root(scope);
  return {{"data", execute(document, operation, variables_of(request), root)}};
}

std::string operation_name(const Json& request) {
  std::string name = operation_name_of(request);
  if (!name.empty() || !request.contains("query") || !request["query"].is_string()) return name;
  try {
    return parse_document(request["query"].get_ref<const std::string&>()).operations.front().name;
  } catch (const ApiError&) {
    return "";
  }
}

Json Service::file_stream(const std::string& entity, const std::string& project, const std::string& run,
                          const Json& body) {
  const Scope scope{*this, ""};
  apply_file_stream(require_run(scope, entity, project, run), body, clock.now());
  return Json::object();
}

void Service::advance_clock(std::chrono::milliseconds by) {
  clock.advance(by.count());
  save_settings();
}

void Service::save_settings() const {
  write_json(
      store.folder() / kSettingsFile,
      {{"format", 1}, {"crash_after_ms", settings.crash_after.count()}, {"clock_offset_ms", clock.offset()}});
}

SavedSettings read_saved_settings(const std::filesystem::path& folder) {
  SavedSettings saved;
  const Json json = read_json(folder / kSettingsFile).value_or(Json::object());
  saved.crash_after = std::chrono::milliseconds(json.value("crash_after_ms", saved.crash_after.count()));
  saved.clock_offset_ms = json.value("clock_offset_ms", 0LL);
  return saved;
}

Project& require_project(const Scope& scope, const std::string& named_entity, const std::string& name) {
  const std::string entity = scope.service.settings.entity_or_default(named_entity);
  Project* project = scope.store().find_project(entity, name);
  if (project == nullptr) throw ApiError(404, "project " + entity + "/" + name + " not found");
  return *project;
}

Run& require_run(const Scope& scope, const std::string& entity, const std::string& project,
                 const std::string& name) {
  Run* run = require_project(scope, entity, project).find_run(name);
  if (run == nullptr) throw ApiError(404, "run " + entity + "/" + project + "/" + name + " not found");
  return *run;
}

ArtifactPlace require_artifact(const Scope& scope, const std::string& id) {
  const ArtifactPlace place = scope.store().find_artifact(id);
  if (!place) throw ApiError(404, "artifact " + id + " not found");
  return place;
}

std::string required_text(const Json& input, const char* key) {
  if (!input.contains(key) || !input[key].is_string()) {
    throw ApiError(400, std::string("input field \"") + key + "\" must be a String");
  }
  return input[key];
}

std::string text_or(const Json& input, const char* key, const std::string& fallback) {
  if (!input.contains(key) || input[key].is_null()) return fallback;
  return required_text(input, key);
}

void check_input(const std::string& type, const Json& input, const std::vector<std::string>& known) {
  if (!input.is_object()) throw ApiError(400, type + " must be an input object");
  for (const auto& [key, value] : input.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw ApiError(
          400, "Field \"" + std::string(key).append("\" is not defined by type \"").append(type) + "\".");
    }
  }
}

Json input_of(const Json& arguments) {
  if (!arguments.contains("input")) throw ApiError(400, "Argument \"input\" is required.");
  return arguments["input"];
}

}  // namespace ranklog::standin
