// Mutations of projects, runs and their files.

#include <array>

#include "loose_json.hpp"
#include "names.hpp"
#include "schema.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

constexpr std::array<const char*, 11> kAttributes = {"groupName", "description", "displayName", "notes",
                                                     "commit",    "host",        "debug",       "jobProgram",
                                                     "jobRepo",   "jobType",     "sweep"};

std::string entity_of(const Scope& scope, const Json& input) {
  const std::string entity = scope.service.settings.entity_or_default(text_or(input, "entityName", ""));
  if (!scope.service.settings.knows_entity(entity)) {
    throw ApiError(404, "entity " + entity + " not found during upsertBucket");
  }
  return entity;
}

// W&B invents two words and a number; here it only has to be a name that nobody chose.
std::string invented_name(const std::string& run_name) {
  return "unnamed-" + run_name;
}

void apply_input(Run& run, const Json& input) {
  for (const char* attribute : kAttributes) {
    if (input.contains(attribute) && !input[attribute].is_null()) {
      run.facts.attributes[attribute] = input[attribute];
    }
  }
  if (input.contains("tags") && input["tags"].is_array()) run.facts.tags = input["tags"];
  if (input.contains("config") && input["config"].is_string()) run.set_config(input["config"]);
  if (input.contains("summaryMetrics") && input["summaryMetrics"].is_string()) {
    run.set_summary(input["summaryMetrics"]);
  }
}

void check_upsert(const Json& input) {
  check_input(
      "UpsertBucketInput", input,
      {"id",          "name",   "modelName", "entityName", "groupName",      "description",     "notes",
       "displayName", "config", "commit",    "host",       "debug",          "jobProgram",      "jobRepo",
       "jobType",     "state",  "sweep",     "tags",       "summaryMetrics", "clientMutationId"});
  const std::string display_name = text_or(input, "displayName", "");
  if (!display_name.empty()) check_display_name(display_name);
  if (input.contains("tags")) check_tags(input["tags"]);
  // Before anything is created, so that a refused run leaves nothing behind.
  for (const char* key : {"config", "summaryMetrics"}) {
    const std::string text = text_or(input, key, "{}");
    const auto json = parse_loose(text);
    if (!json || !json->is_object()) throw ApiError(400, std::string(key) + " is not a JSON object");
  }
}

// The run that the input means, and whether it is new.
std::pair<Run*, bool> find_or_create(const Scope& scope, const Json& input) {
  const std::string id = text_or(input, "id", "");
  if (!id.empty()) {
    if (Run* run = scope.store().find_run_by_id(id)) return {run, false};
  }
  const std::string entity = entity_of(scope, input);
  const std::string project_name = text_or(input, "modelName", "uncategorized");
  const std::string run_name = text_or(input, "name", random_token(8));
  check_project_name(project_name);
  check_run_name(run_name);
  Project* project = scope.store().find_project(entity, project_name);
  if (project == nullptr) project = &scope.store().create_project(entity, project_name, scope.now());
  if (project->deleted_runs.contains(run_name)) {
    throw ApiError(409, "run " + entity + "/" + project_name + "/" + run_name +
                            " was previously created and deleted; try a new run name");
  }
  if (Run* run = project->find_run(run_name)) return {run, false};
  return {&scope.store().create_run(*project, run_name, scope.now()), true};
}

ObjectPtr upsert_bucket(const Scope& scope, const Json& input) {
  check_upsert(input);
  const auto upserted = find_or_create(scope, input);
  Run* run = upserted.first;
  const bool inserted = upserted.second;
  if (inserted) run->facts.attributes["displayName"] = invented_name(run->facts.name);
  apply_input(*run, input);
  if (!run->facts.complete) run->facts.heartbeat_at_ms = scope.now();
  run->save();
  Project& project = require_project(scope, run->facts.entity, run->facts.project);
  auto payload = std::make_shared<Object>("UpsertBucketPayload");
  payload->value("inserted", inserted);
  payload->value("clientMutationId", input.value("clientMutationId", Json(nullptr)));
  payload->field("bucket", {},
                 [scope, &project, run](const Json&) { return Node(run_object(scope, project, *run)); });
  return payload;
}

ObjectPtr upsert_model(const Scope& scope, const Json& input) {
  check_input("UpsertModelInput", input,
              {"id", "name", "entityName", "description", "repo", "access", "views", "clientMutationId"});
  const std::string name = required_text(input, "name");
  const std::string entity = entity_of(scope, input);
  check_project_name(name);
  Project* project = scope.store().find_project(entity, name);
  const bool inserted = project == nullptr;
  if (inserted) project = &scope.store().create_project(entity, name, scope.now());
  if (input.contains("description") && input["description"].is_string()) {
    project->description = input["description"];
    project->save();
  }
  auto payload = std::make_shared<Object>("UpsertModelPayload");
  const Resolver result = [scope, project](const Json&) { return Node(project_object(scope, *project)); };
  payload->field("model", {}, result);
  payload->field("project", {}, result);
  payload->value("inserted", inserted);
  return payload;
}

ObjectPtr delete_run(const Scope& scope, const Json& input) {
  check_input("DeleteRunInput", input, {"id", "deleteArtifacts", "clientMutationId"});
  Run* run = scope.store().find_run_by_id(required_text(input, "id"));
  if (run == nullptr) throw ApiError(404, "run not found");
  Project& project = require_project(scope, run->facts.entity, run->facts.project);
  scope.store().delete_run(project, std::string(run->facts.name));
  return plain_object("DeleteRunPayload",
                      {{"clientMutationId", input.value("clientMutationId", Json(nullptr))}});
}

Run& run_of_files(const Scope& scope, const Json& input) {
  return require_run(scope, required_text(input, "entityName"), required_text(input, "projectName"),
                     required_text(input, "runName"));
}

std::vector<std::string> file_names_of(const Run& run, const Json& input) {
  if (!input.contains("files") || !input["files"].is_array()) throw ApiError(400, "\"files\" must be a list");
  std::vector<std::string> names = input["files"];
  for (const std::string& name : names) static_cast<void>(run.file_path(name));
  return names;
}

ObjectPtr create_run_files(const Scope& scope, const Json& input) {
  check_input("CreateRunFilesInput", input,
              {"entityName", "projectName", "runName", "files", "clientMutationId"});
  Run& run = run_of_files(scope, input);
  std::vector<ObjectPtr> files;
  for (const std::string& name : file_names_of(run, input)) {
    Ticket ticket;
    ticket.label = "run file " + run.facts.name + ": " + name;
    ticket.target = run.file_path(name);
    ticket.writable = true;
    const std::string url = scope.url(scope.service.uploads.grant(std::move(ticket)));
    files.push_back(plain_object("File", {{"name", name}, {"uploadUrl", url}}));
  }
  auto payload = std::make_shared<Object>("CreateRunFilesPayload");
  payload->value("runID", run.facts.id);
  payload->value("uploadHeaders", Json::array());
  payload->field("files", {}, [files](const Json&) { return Node(files); });
  return payload;
}

ObjectPtr mark_run_files_uploaded(const Scope& scope, const Json& input) {
  check_input("MarkRunFilesUploadedInput", input,
              {"entityName", "projectName", "runName", "files", "clientMutationId"});
  Run& run = run_of_files(scope, input);
  for (const std::string& name : file_names_of(run, input)) run.note_uploaded(name);
  run.save();
  return plain_object("MarkRunFilesUploadedPayload", {{"success", true}});
}

}  // namespace

void add_run_mutations(Object& root, const Scope& scope) {
  const auto add = [&root, scope](const char* name, ObjectPtr (*apply)(const Scope&, const Json&)) {
    root.field(name, {"input"},
               [scope, apply](const Json& arguments) { return Node(apply(scope, input_of(arguments))); });
  };
  add("upsertBucket", upsert_bucket);
  add("upsertModel", upsert_model);
  add("deleteRun", delete_run);
  add("createRunFiles", create_run_files);
  add("markRunFilesUploaded", mark_run_files_uploaded);
}

}  // namespace ranklog::standin
