// The types Artifact, ArtifactSequence, ArtifactType, ArtifactCollectionMembership and File of artifacts.

#include <algorithm>

#include "manifest.hpp"
#include "ranklog/schema/digest.hpp"
#include "schema.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

std::vector<ObjectPtr> alias_objects(const Scope& scope, ArtifactPlace place) {
  const std::vector<std::string> names = place.collection->aliases_of(place.artifact->id);
  std::vector<ObjectPtr> aliases;
  aliases.reserve(names.size());
  for (const std::string& alias : names) {
    auto object = std::make_shared<Object>("ArtifactAlias");
    object->value("id", node_id("ArtifactAlias:" + place.collection->name + ":" + alias));
    object->value("alias", alias);
    object->value("artifactCollectionName", place.collection->name);
    object->field("artifactCollection", {}, [scope, place](const Json&) {
      return Node(collection_object(scope, *place.project, *place.collection));
    });
    aliases.push_back(object);
  }
  return aliases;
}

std::vector<ObjectPtr> tag_objects(const Artifact& artifact) {
  std::vector<ObjectPtr> tags;
  for (const std::string& tag : artifact.tags) {
    tags.push_back(plain_object("Tag", {{"id", node_id("Tag:" + tag)}, {"name", tag}}));
  }
  return tags;
}

ObjectPtr file_object(const Scope& scope, ArtifactPlace place, const std::string& path,
                      const ManifestEntry& entry) {
  const std::string md5 = hex_of(base64_decode(entry.digest).value_or(""));
  const std::string url = scope.url(scope.service.uploads.grant_read(place.project->content_path(md5)));
  return plain_object("File", {{"id", node_id("File:" + place.artifact->id + ":" + path)},
                               {"name", path},
                               {"displayName", path},
                               {"url", url},
                               {"directUrl", url},
                               {"sizeBytes", entry.size},
                               {"storagePath", "content/" + md5},
                               {"mimetype", "application/octet-stream"},
                               {"updatedAt", format_time(place.artifact->updated_at_ms)},
                               {"digest", entry.digest},
                               {"md5", entry.digest}});
}

Node file_connection(const Scope& scope, ArtifactPlace place, const Json& arguments) {
  const Json names = arguments.value("names", Json(nullptr));
  const bool all = !names.is_array() || names.empty();
  std::vector<ObjectPtr> files;
  for (const auto& [path, entry] : entries_of(scope, *place.artifact)) {
    if (!entry.ref.empty()) continue;
    if (all || std::find(names.begin(), names.end(), path) != names.end()) {
      files.push_back(file_object(scope, place, path, entry));
    }
  }
  return connection("File", std::move(files), arguments);
}

// The manifest that was uploaded last; of one that is still to come, the first.
ManifestFacts* current_manifest(Artifact& artifact) {
  for (auto manifest = artifact.manifests.rbegin(); manifest != artifact.manifests.rend(); ++manifest) {
    if (manifest->uploaded) return &*manifest;
  }
  return artifact.manifests.empty() ? nullptr : &artifact.manifests.front();
}

void add_facts(Object& object, const Artifact& artifact) {
  object.value("id", artifact.id);
  object.value("versionIndex", artifact.version ? Json(*artifact.version) : Json(nullptr));
  object.value("version", artifact.version_name());
  object.value("digest", artifact.digest);
  object.value("digestAlgorithm", artifact.digest_algorithm);
  object.value("state", artifact.committed ? "COMMITTED" : "PENDING");
  object.value("commitHash", artifact.committed ? md5_hex(artifact.id + artifact.digest).substr(0, 20) : "");
  object.value("size", artifact.size);
  object.value("fileCount", artifact.file_count);
  object.value("historyStep", artifact.history_step);
  object.value("description", artifact.description);
  object.value("metadata", artifact.metadata);
  object.value("ttlDurationSeconds", artifact.ttl_seconds.is_null() ? Json(-2) : artifact.ttl_seconds);
  object.value("ttlIsInherited", artifact.ttl_seconds.is_null());
  object.value("createdAt", format_time(artifact.created_at_ms));
  object.value("updatedAt", format_time(artifact.updated_at_ms));
}

void add_relations(Object& object, const Scope& scope, ArtifactPlace place) {
  object.field("aliases", {}, [scope, place](const Json&) { return Node(alias_objects(scope, place)); });
  object.field("tags", {}, [place](const Json&) { return Node(tag_objects(*place.artifact)); });
  object.field("artifactType", {}, [scope, place](const Json&) {
    return Node(artifact_type_object(scope, *place.project, place.collection->type));
  });
  object.field("artifactSequence", {}, [scope, place](const Json&) {
    return Node(collection_object(scope, *place.project, *place.collection));
  });
  object.field("createdBy", {}, [scope, place](const Json&) {
    Run* run =
        place.artifact->run_name.is_string() ? place.project->find_run(place.artifact->run_name) : nullptr;
    return Node(run == nullptr ? nullptr : run_object(scope, *place.project, *run));
  });
  object.field("usedBy", {}, [scope, place](const Json& arguments) {
    std::vector<ObjectPtr> users;
    for (auto& [name, run] : place.project->runs) {
      const auto& used = run.facts.used_artifacts;
      if (std::find(used.begin(), used.end(), place.artifact->id) == used.end()) continue;
      users.push_back(run_object(scope, *place.project, run));
    }
    return Node(connection("Run", std::move(users), arguments));
  });
}

void add_contents(Object& object, const Scope& scope, ArtifactPlace place) {
  object.field("currentManifest", {}, [scope, place](const Json&) {
    ManifestFacts* manifest = current_manifest(*place.artifact);
    return Node(manifest == nullptr ? nullptr : manifest_object(scope, place, *manifest));
  });
  object.field("files", {"names", "first", "after"},
               [scope, place](const Json& arguments) { return file_connection(scope, place, arguments); });
  object.field("filesByManifestEntries", {"storageLayout", "manifestVersion", "entries", "storageRegion"},
               [scope, place](const Json& arguments) {
                 Json names = Json::array();
                 for (const Json& entry : arguments.value("entries", Json::array())) {
                   names.push_back(required_text(entry, "name"));
                 }
                 return file_connection(scope, place, {{"names", names}});
               });
}

}  // namespace

ObjectPtr artifact_object(const Scope& scope, ArtifactPlace place) {
  auto object = std::make_shared<Object>("Artifact");
  add_facts(*object, *place.artifact);
  add_relations(*object, scope, place);
  add_contents(*object, scope, place);
  return object;
}

ObjectPtr collection_object(const Scope& scope, Project& project, Collection& collection) {
  auto object = std::make_shared<Object>("ArtifactSequence", std::vector<std::string>{"ArtifactCollection"});
  object->value("id", collection.id);
  object->value("name", collection.name);
  object->value("description", nullptr);
  object->value("digestAlgorithm", "MANIFEST_MD5");
  object->value("createdAt", format_time(collection.created_at_ms));
  object->field("type", {}, [scope, &project, &collection](const Json&) {
    return Node(artifact_type_object(scope, project, collection.type));
  });
  object->field("project", {},
                [scope, &project](const Json&) { return Node(project_object(scope, project)); });
  object->field("latestArtifact", {}, [scope, &project, &collection](const Json&) {
    Artifact* latest = collection.latest();
    return Node(latest == nullptr ? nullptr : artifact_object(scope, {&project, &collection, latest}));
  });
  object->field("artifactMembership", {"aliasName"}, [scope, &project, &collection](const Json& arguments) {
    Artifact* found = collection.find(required_text(arguments, "aliasName"));
    return Node(found == nullptr ? nullptr : membership_object(scope, {&project, &collection, found}));
  });
  object->field("artifacts", {"first", "after", "order", "filters"},
                [scope, &project, &collection](const Json& arguments) {
                  std::vector<ObjectPtr> versions;
                  for (auto& [number, artifact] : collection.artifacts) {
                    if (artifact.committed) {
                      versions.push_back(artifact_object(scope, {&project, &collection, &artifact}));
                    }
                  }
                  return Node(connection("VersionedArtifact", std::move(versions), arguments));
                });
  return object;
}

ObjectPtr artifact_type_object(const Scope& scope, Project& project, const std::string& type) {
  auto object = std::make_shared<Object>("ArtifactType");
  object->value("id", node_id("ArtifactType:" + std::to_string(project.number) + ":" + type));
  object->value("name", type);
  object->value("description", nullptr);
  object->value("createdAt", format_time(project.created_at_ms));
  object->field("artifactCollection", {"name"}, [scope, &project, type](const Json& arguments) {
    Collection* collection = project.find_collection(required_text(arguments, "name"));
    const bool right = collection != nullptr && collection->type == type;
    return Node(right ? collection_object(scope, project, *collection) : nullptr);
  });
  object->field("artifactCollections", {"first", "after", "filters", "order"},
                [scope, &project, type](const Json& arguments) {
                  std::vector<ObjectPtr> collections;
                  for (auto& [name, collection] : project.collections) {
                    if (collection.type == type) {
                      collections.push_back(collection_object(scope, project, collection));
                    }
                  }
                  return Node(connection("ArtifactCollection", std::move(collections), arguments));
                });
  return object;
}

ObjectPtr membership_object(const Scope& scope, ArtifactPlace place) {
  auto object = std::make_shared<Object>("ArtifactCollectionMembership");
  object->value("id", node_id("ArtifactCollectionMembership:" + std::to_string(place.artifact->number)));
  object->value("versionIndex", place.artifact->version ? Json(*place.artifact->version) : Json(nullptr));
  object->value("createdAt", format_time(place.artifact->created_at_ms));
  object->field("aliases", {}, [scope, place](const Json&) { return Node(alias_objects(scope, place)); });
  object->field("artifact", {}, [scope, place](const Json&) { return Node(artifact_object(scope, place)); });
  object->field("artifactCollection", {}, [scope, place](const Json&) {
    return Node(collection_object(scope, *place.project, *place.collection));
  });
  object->field("files", {"names", "first", "after"},
                [scope, place](const Json& arguments) { return file_connection(scope, place, arguments); });
  return object;
}

}  // namespace ranklog::standin
