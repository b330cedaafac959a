// Mutations that announce manifests and lead to their upload.

#include "disk.hpp"
#include "manifest.hpp"
#include "schema.hpp"

namespace ranklog::standin {
namespace {

Ticket manifest_ticket(const Scope& scope, ArtifactPlace place, const ManifestFacts& manifest) {
  Ticket ticket;
  ticket.label = "manifest of " + place.collection->name + ": " + manifest.name;
  ticket.target = place.artifact->folder / safe_relative_path(manifest.name);
  ticket.writable = true;
  ticket.content_md5 = manifest.digest;
  ticket.content_type = "application/json";
  ticket.admit = [scope, artifact_id = place.artifact->id] {
    check_pending(*require_artifact(scope, artifact_id).artifact);
  };
  ticket.stored = [scope, artifact_id = place.artifact->id, manifest_id = manifest.id](const Stored&) {
    const ArtifactPlace found = require_artifact(scope, artifact_id);
    if (ManifestFacts* facts = found.artifact->manifest(manifest_id)) facts->uploaded = true;
    found.artifact->save();
  };
  return ticket;
}

ObjectPtr manifest_payload(const std::string& type, const Scope& scope, ArtifactPlace place,
                           ManifestFacts& manifest) {
  auto payload = std::make_shared<Object>(type);
  payload->field("artifactManifest", {}, [scope, place, &manifest](const Json&) {
    return Node(manifest_object(scope, place, manifest));
  });
  return payload;
}

// Naming a manifest again with another digest replaces what was said before.
ManifestFacts& manifest_for(Artifact& artifact, const std::string& name) {
  for (ManifestFacts& manifest : artifact.manifests) {
    if (manifest.name == name) return manifest;
  }
  ManifestFacts manifest;
  manifest.id = node_id("ArtifactManifest:" + std::to_string(artifact.number) + ":" +
                        std::to_string(artifact.manifests.size()));
  manifest.name = name;
  artifact.manifests.push_back(manifest);
  return artifact.manifests.back();
}

void set_digest(ManifestFacts& manifest, const std::string& digest) {
  if (!digest.empty()) static_cast<void>(checked_md5(digest));
  if (digest != manifest.digest) manifest.uploaded = false;
  manifest.digest = digest;
}

ObjectPtr create_manifest(const Scope& scope, const Json& input) {
  check_input("CreateArtifactManifestInput", input,
              {"artifactID", "baseArtifactID", "name", "digest", "entityName", "projectName", "runName",
               "type", "clientMutationId"});
  const ArtifactPlace place = require_artifact(scope, required_text(input, "artifactID"));
  require_project(scope, required_text(input, "entityName"), required_text(input, "projectName"));
  check_pending(*place.artifact);
  const std::string type = text_or(input, "type", "FULL");
  if (type != "FULL" && type != "INCREMENTAL" && type != "PATCH") {
    throw ApiError(400, "unknown manifest type \"" + type + "\"");
  }
  const std::string name = required_text(input, "name");
  if (!name.starts_with("wandb_manifest") || name.find('/') != std::string::npos) {
    throw ApiError(400, "\"" + name + "\" is no name of a manifest");
  }
  ManifestFacts& manifest = manifest_for(*place.artifact, name);
  manifest.type = type;
  manifest.base_artifact_id = text_or(input, "baseArtifactID", "");
  set_digest(manifest, required_text(input, "digest"));
  place.artifact->save();
  return manifest_payload("CreateArtifactManifestPayload", scope, place, manifest);
}

ObjectPtr update_manifest(const Scope& scope, const Json& input) {
  check_input("UpdateArtifactManifestInput", input,
              {"artifactManifestID", "digest", "baseArtifactID", "clientMutationId"});
  const std::string id = required_text(input, "artifactManifestID");
  const ArtifactPlace place = scope.store().find_manifest(id);
  if (!place) throw ApiError(404, "artifact manifest " + id + " not found");
  check_pending(*place.artifact);
  ManifestFacts& manifest = *place.artifact->manifest(id);
  set_digest(manifest, text_or(input, "digest", manifest.digest));
  manifest.base_artifact_id = text_or(input, "baseArtifactID", manifest.base_artifact_id);
  place.artifact->save();
  return manifest_payload("UpdateArtifactManifestPayload", scope, place, manifest);
}

}  // namespace

ObjectPtr manifest_object(const Scope& scope, ArtifactPlace place, ManifestFacts& manifest) {
  auto object = std::make_shared<Object>("ArtifactManifest");
  object->value("id", manifest.id);
  object->value("name", manifest.name);
  object->value("digest", manifest.digest);
  object->field("file", {}, [scope, place, &manifest](const Json&) {
    auto file = std::make_shared<Object>("File");
    const Ticket ticket = manifest_ticket(scope, place, manifest);
    file->value("id", node_id("File:" + manifest.id));
    file->value("uploadHeaders", upload_headers(ticket));
    file->field("uploadUrl", {}, [scope, ticket](const Json&) {
      return Node(Json(scope.url(scope.service.uploads.grant(ticket))));
    });
    file->field("directUrl", {}, [scope, ticket](const Json&) {
      return Node(Json(scope.url(scope.service.uploads.grant_read(ticket.target))));
    });
    return Node(ObjectPtr(file));
  });
  return object;
}

void add_artifact_manifest_mutations(Object& root, const Scope& scope) {
  const auto add = [&root, scope](const char* name, ObjectPtr (*apply)(const Scope&, const Json&)) {
    root.field(name, {"input"},
               [scope, apply](const Json& arguments) { return Node(apply(scope, input_of(arguments))); });
  };
  add("createArtifactManifest", create_manifest);
  add("updateArtifactManifest", update_manifest);
}

}  // namespace ranklog::standin
