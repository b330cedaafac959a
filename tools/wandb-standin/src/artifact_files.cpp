// Mutations that announce an artifact's files and lead to their upload, whole or in parts.

#include <fstream>
#include <set>

#include "disk.hpp"
#include "manifest.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"
#include "schema.hpp"

namespace ranklog::standin {
namespace {

constexpr const char* kPartsFolder = "parts";

// What createArtifactFiles is asked for, for one file.
struct FileSpec {
  std::string name;
  std::string md5;  // base64
  std::string md5_hex;
  Json parts;  // null or [{partNumber, hexMD5}]
};

FileSpec spec_of(const Json& input) {
  check_input(
      "CreateArtifactFileSpecInput", input,
      {"artifactID", "artifactManifestID", "name", "md5", "mimetype", "uploadPartsInput", "storageRegion"});
  FileSpec spec;
  spec.name = required_text(input, "name");
  spec.md5 = required_text(input, "md5");
  spec.md5_hex = checked_md5(spec.md5);
  spec.parts = input.value("uploadPartsInput", Json(nullptr));
  static_cast<void>(safe_relative_path(spec.name));
  return spec;
}

void note_content(Project& project, const Artifact& artifact, const Stored& stored) {
  project.contents.try_emplace(stored.md5_hex, Content{stored.size, artifact.id});
}

Ticket file_ticket(const Scope& scope, ArtifactPlace place, const FileSpec& spec) {
  Ticket ticket;
  ticket.label = "artifact " + place.collection->name + ": " + spec.name;
  ticket.target = place.project->content_path(spec.md5_hex);
  ticket.writable = true;
  ticket.content_md5 = spec.md5;
  ticket.content_type = "application/octet-stream";
  ticket.stored = [scope, id = place.artifact->id](const Stored& stored) {
    const ArtifactPlace found = require_artifact(scope, id);
    note_content(*found.project, *found.artifact, stored);
  };
  return ticket;
}

// The ID of a multipart upload is the name of the folder that collects its parts.
fs::path parts_folder(const Artifact& artifact, const std::string& upload_id) {
  return artifact.folder / kPartsFolder / safe_relative_path(upload_id);
}

ObjectPtr multipart_urls(const Scope& scope, ArtifactPlace place, const FileSpec& spec) {
  const std::string upload_id = spec.md5_hex;
  std::vector<ObjectPtr> parts;
  for (const Json& part : spec.parts) {
    check_input("UploadPartsInput", part, {"partNumber", "hexMD5"});
    const Json number = part.value("partNumber", Json(nullptr));
    if (!number.is_number_unsigned()) throw ApiError(400, "\"partNumber\" must be an Int from 1");
    Ticket ticket;
    ticket.label = "part " + number.dump() + " of artifact " + place.collection->name + ": " + spec.name;
    ticket.target = parts_folder(*place.artifact, upload_id) / number.dump();
    ticket.writable = true;
    ticket.admit = [scope, id = place.artifact->id] { check_pending(*require_artifact(scope, id).artifact); };
    ticket.content_md5 = base64_of_hex(required_text(part, "hexMD5"));
    ticket.content_type = "application/octet-stream";
    const std::string url = scope.url(scope.service.uploads.grant(std::move(ticket)));
    parts.push_back(plain_object("UploadUrlPart", {{"partNumber", number}, {"uploadUrl", url}}));
  }
  auto urls = std::make_shared<Object>("UploadMultipartUrls");
  urls->value("uploadID", upload_id);
  urls->field("uploadUrlParts", {}, [parts](const Json&) { return Node(parts); });
  return urls;
}

ObjectPtr created_file(const Scope& scope, ArtifactPlace place, const FileSpec& spec) {
  const auto known = place.project->contents.find(spec.md5_hex);
  const bool stored = known != place.project->contents.end();
  const std::string birth = stored && !known->second.birth_artifact_id.empty()
                                ? known->second.birth_artifact_id
                                : place.artifact->id;
  auto file = std::make_shared<Object>("File");
  file->value("name", spec.name);
  file->value("storagePath", "content/" + spec.md5_hex);
  const Ticket ticket = file_ticket(scope, place, spec);
  file->value("uploadHeaders", stored ? Json::array() : upload_headers(ticket));
  file->value("uploadUrl", stored ? Json(nullptr) : Json(scope.url(scope.service.uploads.grant(ticket))));
  const ObjectPtr parts = stored || spec.parts.is_null() ? nullptr : multipart_urls(scope, place, spec);
  file->field("uploadMultipartUrls", {}, [parts](const Json&) { return Node(parts); });
  file->field("artifact", {}, [scope, birth](const Json&) {
    return Node(artifact_object(scope, require_artifact(scope, birth)));
  });
  return file;
}

ObjectPtr create_files(const Scope& scope, const Json& input) {
  check_input("CreateArtifactFilesInput", input,
              {"artifactFiles", "storageLayout", "cloudRegionID", "clientMutationId"});
  if (required_text(input, "storageLayout") != "V2")
    throw ApiError(400, "this server has storage layout V2 only");
  if (!input.contains("artifactFiles") || !input["artifactFiles"].is_array()) {
    throw ApiError(400, "\"artifactFiles\" must be a list");
  }
  std::vector<ObjectPtr> files;
  std::set<const Artifact*> changed;
  for (const Json& one : input["artifactFiles"]) {
    const FileSpec spec = spec_of(one);
    const ArtifactPlace place = require_artifact(scope, required_text(one, "artifactID"));
    check_pending(*place.artifact);
    const std::string manifest_id = text_or(one, "artifactManifestID", "");
    if (!manifest_id.empty() && place.artifact->manifest(manifest_id) == nullptr) {
      throw ApiError(404, "artifact manifest " + manifest_id + " not found");
    }
    place.artifact->files[spec.name] = spec.md5;
    changed.insert(place.artifact);
    files.push_back(created_file(scope, place, spec));
  }
  for (const Artifact* artifact : changed) artifact->save();
  auto payload = std::make_shared<Object>("CreateArtifactFilesPayload");
  const ObjectPtr all = connection("File", std::move(files), Json::object());
  payload->field("files", {}, [all](const Json&) { return Node(all); });
  return payload;
}

// Appends the part to `out`, and checks that the client names the ETag that its PUT was answered with.
void append_part(std::ofstream& out, const fs::path& folder, const Json& part) {
  const std::string number = part.value("partNumber", Json(nullptr)).dump();
  const auto bytes = read_text(folder / number);
  if (!bytes) throw ApiError(400, "part " + number + " was never uploaded");
  if (required_text(part, "hexMD5") != "\"" + md5_hex(*bytes) + "\"") {
    throw ApiError(400, "part " + number + " is not named by its ETag");
  }
  out << *bytes;
}

ObjectPtr complete_multipart(const Scope& scope, const Json& input) {
  check_input("CompleteMultipartUploadArtifactInput", input,
              {"completeMultipartAction", "completedParts", "artifactID", "storagePath", "uploadID",
               "clientMutationId"});
  const ArtifactPlace place = require_artifact(scope, required_text(input, "artifactID"));
  const std::string upload_id = required_text(input, "uploadID");
  const fs::path folder = parts_folder(*place.artifact, upload_id);
  const fs::path whole = folder / "whole";
  make_folder(folder);
  {
    std::ofstream out(whole, std::ios::binary | std::ios::trunc);
    for (const Json& part : input.value("completedParts", Json::array())) append_part(out, folder, part);
    out.flush();
    if (!out) throw Error(ErrorCode::kIo, "cannot write " + whole.string());
  }
  const FileDigests digests = digest_file(whole);
  if (digests.md5 != upload_id) throw ApiError(400, "the parts do not make the file that was announced");
  move_file(whole, place.project->content_path(digests.md5));
  note_content(*place.project, *place.artifact, {digests.size, digests.md5});
  fs::remove_all(folder);
  return plain_object("CompleteMultipartUploadArtifactPayload", {{"digest", base64_of_hex(digests.md5)}});
}

}  // namespace

void add_artifact_file_mutations(Object& root, const Scope& scope) {
  const auto add = [&root, scope](const char* name, ObjectPtr (*apply)(const Scope&, const Json&)) {
    root.field(name, {"input"},
               [scope, apply](const Json& arguments) { return Node(apply(scope, input_of(arguments))); });
  };
  add("createArtifactFiles", create_files);
  add("completeMultipartUploadArtifact", complete_multipart);
}

}  // namespace ranklog::standin
