// Mutations that make artifacts, name them and relate them to runs.

#include <algorithm>

#include "names.hpp"
#include "schema.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

constexpr std::size_t kMaxMetadataKeys = 100;

const std::vector<std::string> kCreateKeys = {"entityName",
                                              "projectName",
                                              "runName",
                                              "artifactTypeName",
                                              "artifactCollectionName",
                                              "artifactCollectionNames",
                                              "digest",
                                              "digestAlgorithm",
                                              "description",
                                              "metadata",
                                              "aliases",
                                              "tags",
                                              "labels",
                                              "ttlDurationSeconds",
                                              "historyStep",
                                              "enableDigestDeduplication",
                                              "distributedID",
                                              "clientID",
                                              "sequenceClientID",
                                              "storageRegion",
                                              "clientMutationId"};

// The single collection that an artifact is made in; an old client gives it as a list.
std::string collection_name_of(const Json& input) {
  const Json names = input.value("artifactCollectionNames", Json(nullptr));
  if (names.is_array() && names.size() == 1 && names[0].is_string()) return names[0];
  return required_text(input, "artifactCollectionName");
}

std::vector<std::string> alias_names(const Json& aliases) {
  std::vector<std::string> names;
  if (aliases.is_null()) return names;
  for (const Json& one : aliases) {
    check_input("ArtifactAliasInput", one, {"artifactCollectionName", "alias", "entityName", "projectName"});
    names.push_back(required_text(one, "alias"));
    check_alias(names.back());
  }
  return names;
}

std::vector<std::string> tag_names(const Json& tags) {
  std::vector<std::string> names;
  if (tags.is_null()) return names;
  for (const Json& one : tags) names.push_back(required_text(one, "tagName"));
  return names;
}

// Metadata is strict JSON: NaN and Infinity are refused.
Json checked_metadata(const Json& text) {
  if (text.is_null()) return text;
  const Json metadata =
      text.is_string() ? Json::parse(text.get_ref<const std::string&>(), nullptr, false) : Json();
  if (!metadata.is_object()) throw ApiError(400, "artifact metadata is not a JSON object");
  if (metadata.size() > kMaxMetadataKeys) throw ApiError(400, "artifact metadata has more than 100 keys");
  return text;
}

Json member(const Json& input, const char* key) {
  return input.value(key, Json(nullptr));
}

Artifact artifact_from_input(const Scope& scope, const Json& input) {
  Artifact artifact;
  artifact.collection = collection_name_of(input);
  artifact.type = required_text(input, "artifactTypeName");
  artifact.digest = required_text(input, "digest");
  artifact.digest_algorithm = text_or(input, "digestAlgorithm", "MANIFEST_MD5");
  artifact.description = member(input, "description");
  artifact.metadata = checked_metadata(member(input, "metadata"));
  artifact.aliases = alias_names(member(input, "aliases"));
  artifact.tags = tag_names(member(input, "tags"));
  artifact.client_id = text_or(input, "clientID", "");
  artifact.sequence_client_id = text_or(input, "sequenceClientID", "");
  artifact.distributed_id = text_or(input, "distributedID", "");
  artifact.run_name = member(input, "runName");
  artifact.history_step = member(input, "historyStep");
  artifact.ttl_seconds = member(input, "ttlDurationSeconds");
  artifact.created_at_ms = artifact.updated_at_ms = scope.now();
  check_artifact_name(artifact.collection);
  check_artifact_name(artifact.type);
  if (artifact.digest_algorithm != "MANIFEST_MD5") {
    throw ApiError(400, "this server knows the digest algorithm MANIFEST_MD5 only");
  }
  return artifact;
}

Collection& collection_for(const Scope& scope, Project& project, const Artifact& artifact) {
  Collection* collection = project.find_collection(artifact.collection);
  if (collection == nullptr) {
    return scope.store().create_collection(project, artifact.collection, artifact.type, scope.now());
  }
  if (collection->type != artifact.type) {
    throw ApiError(400, "artifact collection \"" + artifact.collection + "\" already exists with type \"" +
                            collection->type + "\"");
  }
  return *collection;
}

void point_aliases(Collection& collection, const Artifact& artifact,
                   const std::vector<std::string>& aliases) {
  for (const std::string& alias : aliases) collection.aliases[alias] = artifact.id;
  collection.save();
}

// An artifact that the input asks for again: by client ID, by the ID that its distributed makers share, or by
// having the digest of the newest version.
Artifact* already_there(Collection& collection, const Artifact& wanted, bool deduplicate) {
  for (auto& [number, artifact] : collection.artifacts) {
    const bool same_client = !wanted.client_id.empty() && artifact.client_id == wanted.client_id;
    const bool shared = !wanted.distributed_id.empty() && !artifact.committed &&
                        artifact.distributed_id == wanted.distributed_id;
    if (same_client || shared) return &artifact;
  }
  Artifact* latest = collection.latest();
  if (!deduplicate || latest == nullptr || latest->digest != wanted.digest) return nullptr;
  point_aliases(collection, *latest, wanted.aliases);
  return latest;
}

ObjectPtr artifact_payload(const std::string& type, const Scope& scope, ArtifactPlace place) {
  auto payload = std::make_shared<Object>(type);
  payload->field("artifact", {}, [scope, place](const Json&) { return Node(artifact_object(scope, place)); });
  payload->value("success", true);
  payload->value("clientMutationId", nullptr);
  return payload;
}

ObjectPtr create_artifact(const Scope& scope, const Json& input) {
  check_input("CreateArtifactInput", input, kCreateKeys);
  Project& project =
      require_project(scope, required_text(input, "entityName"), required_text(input, "projectName"));
  Artifact artifact = artifact_from_input(scope, input);
  if (artifact.run_name.is_string()) require_run(scope, project.entity, project.name, artifact.run_name);
  Collection& collection = collection_for(scope, project, artifact);
  Artifact* made = already_there(collection, artifact, input.value("enableDigestDeduplication", false));
  if (made == nullptr) made = &scope.store().add_artifact(collection, std::move(artifact));
  return artifact_payload("CreateArtifactPayload", scope, {&project, &collection, made});
}

ObjectPtr commit(const Scope& scope, const Json& input) {
  check_input("CommitArtifactInput", input, {"artifactID", "clientMutationId"});
  const ArtifactPlace place = require_artifact(scope, required_text(input, "artifactID"));
  if (!place.artifact->committed) commit_artifact(scope, place);
  return artifact_payload("CommitArtifactPayload", scope, place);
}

ObjectPtr use_artifact(const Scope& scope, const Json& input) {
  check_input("UseArtifactInput", input,
              {"artifactID", "entityName", "projectName", "runName", "usedAs", "artifactEntityName",
               "artifactProjectName", "clientMutationId"});
  const ArtifactPlace place = require_artifact(scope, required_text(input, "artifactID"));
  Run& run = require_run(scope, required_text(input, "entityName"), required_text(input, "projectName"),
                         required_text(input, "runName"));
  if (!place.artifact->committed) throw ApiError(400, "artifact " + place.artifact->id + " is not committed");
  auto& used = run.facts.used_artifacts;
  if (std::find(used.begin(), used.end(), place.artifact->id) == used.end())
    used.push_back(place.artifact->id);
  run.save();
  return artifact_payload("UseArtifactPayload", scope, place);
}

ObjectPtr update_artifact(const Scope& scope, const Json& input) {
  check_input("UpdateArtifactInput", input,
              {"artifactID", "description", "metadata", "aliases", "ttlDurationSeconds", "clientMutationId"});
  const ArtifactPlace place = require_artifact(scope, required_text(input, "artifactID"));
  Artifact& artifact = *place.artifact;
  if (input.contains("metadata")) artifact.metadata = checked_metadata(input["metadata"]);
  if (input.contains("description")) artifact.description = input["description"];
  if (input.contains("ttlDurationSeconds")) artifact.ttl_seconds = input["ttlDurationSeconds"];
  if (input.contains("aliases") && input["aliases"].is_array()) {
    std::erase_if(place.collection->aliases, [&](const auto& alias) { return alias.second == artifact.id; });
    point_aliases(*place.collection, artifact, alias_names(input["aliases"]));
  }
  artifact.updated_at_ms = scope.now();
  artifact.save();
  return artifact_payload("UpdateArtifactPayload", scope, place);
}

ObjectPtr add_aliases(const Scope& scope, const Json& input) {
  check_input("AddAliasesInput", input, {"artifactID", "aliases", "clientMutationId"});
  const ArtifactPlace place = require_artifact(scope, required_text(input, "artifactID"));
  if (!place.artifact->committed) throw ApiError(400, "artifact " + place.artifact->id + " is not committed");
  point_aliases(*place.collection, *place.artifact, alias_names(member(input, "aliases")));
  return artifact_payload("AddAliasesPayload", scope, place);
}

ObjectPtr delete_aliases(const Scope& scope, const Json& input) {
  check_input("DeleteAliasesInput", input, {"artifactID", "aliases", "clientMutationId"});
  const ArtifactPlace place = require_artifact(scope, required_text(input, "artifactID"));
  for (const std::string& alias : alias_names(member(input, "aliases"))) {
    const auto found = place.collection->aliases.find(alias);
    const bool ours = found != place.collection->aliases.end() && found->second == place.artifact->id;
    if (ours) place.collection->aliases.erase(found);
  }
  place.collection->save();
  return artifact_payload("DeleteAliasesPayload", scope, place);
}

}  // namespace

void add_artifact_mutations(Object& root, const Scope& scope) {
  const auto add = [&root, scope](const char* name, ObjectPtr (*apply)(const Scope&, const Json&)) {
    root.field(name, {"input"},
               [scope, apply](const Json& arguments) { return Node(apply(scope, input_of(arguments))); });
  };
  add("createArtifact", create_artifact);
  add("commitArtifact", commit);
  add("useArtifact", use_artifact);
  add("updateArtifact", update_artifact);
  add("addAliases", add_aliases);
  add("deleteAliases", delete_aliases);
}

}  // namespace ranklog::standin
