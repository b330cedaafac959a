// Entities and projects, and what can be asked of them.

#include <set>

#include "schema.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

void add_runs(Object& object, const Scope& scope, Project& project) {
  object.field("run", {"name"}, [scope, &project](const Json& arguments) {
    Run* run = project.find_run(required_text(arguments, "name"));
    return Node(run == nullptr ? nullptr : run_object(scope, project, *run));
  });
  object.field("bucket", {"name", "missingOk"}, [scope, &project](const Json& arguments) {
    const std::string name = required_text(arguments, "name");
    Run* run = project.find_run(name);
    if (run == nullptr && arguments.value("missingOk", Json(false)) != true) {
      throw ApiError(404, "run " + project.entity + "/" + project.name + "/" + name + " not found");
    }
    return Node(run == nullptr ? nullptr : run_object(scope, project, *run));
  });
  object.value("runCount", project.runs.size());
  object.field("runs", {"first", "after", "order", "filters"}, [scope, &project](const Json& arguments) {
    std::vector<ObjectPtr> runs;
    runs.reserve(project.runs.size());
    for (auto& [name, run] : project.runs) runs.push_back(run_object(scope, project, run));
    return Node(connection("Run", std::move(runs), arguments));
  });
}

void add_artifact_ways(Object& object, const Scope& scope, Project& project) {
  object.field("artifactTypes", {"first", "after"}, [scope, &project](const Json& arguments) {
    std::set<std::string> names;
    for (const auto& [name, collection] : project.collections) names.insert(collection.type);
    std::vector<ObjectPtr> types;
    types.reserve(names.size());
    for (const std::string& name : names) types.push_back(artifact_type_object(scope, project, name));
    return Node(connection("ArtifactType", std::move(types), arguments));
  });
  object.field("artifactType", {"name"}, [scope, &project](const Json& arguments) {
    const std::string type = required_text(arguments, "name");
    for (const auto& [name, collection] : project.collections) {
      if (collection.type == type) return Node(artifact_type_object(scope, project, type));
    }
    return Node(ObjectPtr());
  });
  object.field("artifactCollection", {"name"}, [scope, &project](const Json& arguments) {
    Collection* collection = project.find_collection(required_text(arguments, "name"));
    return Node(collection == nullptr ? nullptr : collection_object(scope, project, *collection));
  });
}

// "<collection>:<alias or version>", the alias being "latest" where it is left out.
ArtifactPlace find_by_name(Project& project, const std::string& full_name) {
  const std::size_t colon = full_name.find(':');
  Collection* collection = project.find_collection(full_name.substr(0, colon));
  if (collection == nullptr) return {};
  Artifact* artifact = collection->find(colon == std::string::npos ? "latest" : full_name.substr(colon + 1));
  return {&project, collection, artifact};
}

void add_named_artifacts(Object& object, const Scope& scope, Project& project) {
  object.field("artifactCollectionMembership", {"name"}, [scope, &project](const Json& arguments) {
    const ArtifactPlace place = find_by_name(project, required_text(arguments, "name"));
    return Node(place ? membership_object(scope, place) : nullptr);
  });
  object.field("artifact", {"name"}, [scope, &project](const Json& arguments) {
    const ArtifactPlace place = find_by_name(project, required_text(arguments, "name"));
    return Node(place ? artifact_object(scope, place) : nullptr);
  });
}

}  // namespace

ObjectPtr entity_object(const std::string& name) {
  auto entity = std::make_shared<Object>("Entity");
  entity->value("id", node_id("Entity:" + name));
  entity->value("name", name);
  entity->value("xxhashDigestsEnabled", false);
  entity->value("organization", nullptr);
  return entity;
}

ObjectPtr project_object(const Scope& scope, Project& project) {
  auto object = std::make_shared<Object>("Project");
  object->value("id", project.id);
  object->value("internalId", node_id("ProjectInternalId:" + std::to_string(project.number)));
  object->value("name", project.name);
  object->value("entityName", project.entity);
  object->value("description", project.description);
  object->value("createdAt", format_time(project.created_at_ms));
  object->value("access", "USER_WRITE");
  object->value("views", nullptr);
  object->value("readOnly", false);
  object->value("isBenchmark", false);
  object->field("entity", {}, [name = project.entity](const Json&) { return Node(entity_object(name)); });
  object->field("user", {}, [scope](const Json&) { return Node(ObjectPtr()); });
  add_runs(*object, scope, project);
  add_artifact_ways(*object, scope, project);
  add_named_artifacts(*object, scope, project);
  return object;
}

}  // namespace ranklog::standin
