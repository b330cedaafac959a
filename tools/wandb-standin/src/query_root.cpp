// The Query type: who is asking, what this server is, and the ways into projects and artifacts.

#include <array>

#include "schema.hpp"

namespace ranklog::standin {
namespace {

// The client of 2026 refuses servers older than 0.70.
constexpr const char* kServerVersion = "0.80.0";
constexpr const char* kMaxClientVersion = "0.99.0";

constexpr std::array<const char*, 8> kFeatures = {"ARTIFACT_TAGS",
                                                  "CLIENT_IDS",
                                                  "EXPAND_DEFINED_METRIC_GLOBS",
                                                  "FILESTREAM_GZIP",
                                                  "LARGE_FILENAMES",
                                                  "MARK_RUN_FILES_UPLOADED",
                                                  "STRUCTURED_CONSOLE_LOGS",
                                                  "USE_ARTIFACT_WITH_ENTITY_AND_PROJECT_INFORMATION"};

ObjectPtr viewer_object(const Settings& settings) {
  auto viewer = std::make_shared<Object>("User");
  viewer->value("id", node_id("User:1"));
  viewer->value("entity", settings.default_entity());
  viewer->value("username", settings.default_entity());
  viewer->value("name", settings.default_entity());
  viewer->value("email", settings.default_entity() + "@standin.invalid");
  viewer->value("flags", "{}");
  viewer->value("admin", false);
  viewer->value("deletedAt", nullptr);
  viewer->field("teams", {}, [entities = settings.entities](const Json& arguments) {
    std::vector<ObjectPtr> teams;
    teams.reserve(entities.size());
    for (const std::string& entity : entities) teams.push_back(plain_object("Entity", {{"name", entity}}));
    return Node(connection("Entity", std::move(teams), arguments));
  });
  viewer->field("apiKeys", {},
                [](const Json& arguments) { return Node(connection("ApiKey", {}, arguments)); });
  return viewer;
}

ObjectPtr server_info_object() {
  auto info = std::make_shared<Object>("ServerInfo");
  info->value("cliVersionInfo", {{"max_cli_version", kMaxClientVersion}, {"min_cli_version", "0.13.0"}});
  const auto local = plain_object("LocalVersionInfo", {{"outOfDate", false},
                                                       {"latestVersionString", kServerVersion},
                                                       {"versionOnThisInstanceString", kServerVersion}});
  info->field("latestLocalVersionInfo", {}, [local](const Json&) { return Node(local); });
  info->field("features", {}, [](const Json&) {
    std::vector<ObjectPtr> features;
    features.reserve(kFeatures.size());
    for (const char* name : kFeatures) {
      features.push_back(plain_object("ServerFeature", {{"name", name}, {"isEnabled", true}}));
    }
    return Node(std::move(features));
  });
  return info;
}

void add_projects(Object& root, const Scope& scope) {
  const Resolver find = [scope](const Json& arguments) {
    const std::string entity = scope.service.settings.entity_or_default(text_or(arguments, "entityName", ""));
    Project* project = scope.store().find_project(entity, required_text(arguments, "name"));
    return Node(project == nullptr ? nullptr : project_object(scope, *project));
  };
  root.field("project", {"name", "entityName"}, find);
  root.field("model", {"name", "entityName"}, find);
}

void add_artifacts(Object& root, const Scope& scope) {
  root.field("artifact", {"id"}, [scope](const Json& arguments) {
    const ArtifactPlace place = scope.store().find_artifact(required_text(arguments, "id"));
    return Node(place ? artifact_object(scope, place) : nullptr);
  });
  root.field("clientIDMapping", {"clientID"}, [scope](const Json& arguments) {
    const ArtifactPlace place = scope.store().find_client_id(required_text(arguments, "clientID"));
    return Node(place ? plain_object("ClientIDMapping", {{"serverID", place.artifact->id}}) : nullptr);
  });
}

}  // namespace

ObjectPtr query_root(const Scope& scope) {
  auto root = std::make_shared<Object>("Query");
  root->field("viewer", {}, [scope](const Json&) { return Node(viewer_object(scope.service.settings)); });
  root->field("serverInfo", {}, [](const Json&) { return Node(server_info_object()); });
  root->field("entity", {"name"}, [scope](const Json& arguments) {
    const std::string name = required_text(arguments, "name");
    return Node(scope.service.settings.knows_entity(name) ? entity_object(name) : nullptr);
  });
  add_projects(*root, scope);
  add_artifacts(*root, scope);
  return root;
}

ObjectPtr mutation_root(const Scope& scope) {
  auto root = std::make_shared<Object>("Mutation");
  add_run_mutations(*root, scope);
  add_artifact_mutations(*root, scope);
  add_artifact_manifest_mutations(*root, scope);
  add_artifact_file_mutations(*root, scope);
  return root;
}

}  // namespace ranklog::standin
