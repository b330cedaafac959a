#include "fake_wandb.hpp"

#include <algorithm>

#include "body_source.hpp"
#include "fakes.hpp"
#include "ranklog/schema/digest.hpp"

namespace ranklog::sync::test {
namespace {

using nlohmann::json;

// Empty: the file is not what it should be, as a real transport finds out while it reads.
std::optional<std::string> body_of(const HttpRequest& request) {
  BodySource source(request);
  if (!source.open()) return std::nullopt;
  std::string bytes(source.size(), '\0');
  std::size_t at = 0;
  while (at < bytes.size()) {
    const auto got = source.read(bytes.data() + at, bytes.size() - at);
    if (!got) return std::nullopt;
    at += *got;
  }
  return bytes;
}

bool has_key(const HttpRequest& request, const std::string& key) {
  const std::string wanted = "Basic " + base64("api:" + key);
  return std::ranges::any_of(request.headers, [&](const auto& header) {
    return header.first == "Authorization" && header.second == wanted;
  });
}

// The run's id in .../files/<entity>/<project>/<run>/file_stream
std::string run_in(const std::string& url) {
  const std::size_t end = url.rfind('/');
  const std::size_t begin = url.rfind('/', end - 1);
  return url.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::string request_kind(const HttpRequest& request) {
  if (request.method == "PUT") return "PUT";
  if (!request.url.ends_with("/graphql")) return "file_stream";
  return json::parse(request.body)["operationName"];
}

HttpResponse FakeWandb::perform(const HttpRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto fault = faults(requests_++, request);
  log.push_back(request_kind(request));
  if (fault && !fault->acts) {
    if (fault->kills) throw Killed();
    return fault->response;
  }
  HttpResponse response = act(request);
  if (!fault) return response;
  if (fault->kills) throw Killed();
  return fault->response;
}

HttpResponse FakeWandb::act(const HttpRequest& request) {
  if (request.method == "PUT") return put(request);
  if (!has_key(request, api_key)) return answer(401, R"({"errors":[{"message":"user is not logged in"}]})");
  return request.url.ends_with("/graphql") ? graphql(request) : file_stream(request);
}

HttpResponse FakeWandb::put(const HttpRequest& request) {
  const bool with_key = std::ranges::any_of(
      request.headers, [](const auto& header) { return header.first == "Authorization"; });
  if (with_key && !storage_is_proxied) faults_of_client.push_back("sent the key to an upload address");
  if (storage_is_proxied && !has_key(request, api_key)) return answer(401, "who are you?");
  const auto place = upload_places_.find(request.url);
  if (place == upload_places_.end()) return answer(403, "no such address");
  const auto bytes = body_of(request);
  if (!bytes) return no_answer(Delivery::kSourceChanged);
  place->second(*bytes);
  return answer(200, "");
}

HttpResponse FakeWandb::graphql(const HttpRequest& request) {
  const json body = json::parse(request.body);
  const json data = answer_to(body["operationName"], body["variables"]);
  return answer(200, json{{"data", data}}.dump());
}

json FakeWandb::answer_to(const std::string& operation, const json& variables) {
  if (operation == "Viewer") return {{"viewer", {{"id", "u1"}, {"entity", "acme"}, {"username", "jane"}}}};
  if (operation == "ServerFeaturesQuery") {
    json list = json::array();
    for (const std::string& name : features) list.push_back({{"name", name}, {"isEnabled", true}});
    return {{"serverInfo", {{"features", list}}}};
  }
  if (operation == "RunResumeStatus") return resume_status(variables);
  if (operation == "UpsertBucket") return upsert(variables);
  if (operation == "CreateArtifact") return create_artifact(variables["input"]);
  if (operation == "CreateArtifactManifest") return create_manifest(variables);
  if (operation == "CreateArtifactFiles") return create_files(variables);
  if (operation == "CommitArtifact") return commit(variables);
  if (operation == "UseArtifact") return use(variables["input"]);
  if (operation == "CreateRunFiles") return create_run_files(variables);
  if (operation == "ClientIDMapping") {
    const ArtifactVersion* found = find_client(variables["clientID"]);
    return {{"clientIDMapping", found == nullptr ? json(nullptr) : json{{"serverID", found->id}}}};
  }
  if (operation == "AddAliases") {
    point_aliases(*find_artifact(variables["artifactID"]), variables["aliases"]);
    return {{"addAliases", {{"success", true}}}};
  }
  if (operation == "UpdateArtifact") {
    find_artifact(variables["artifactID"])->metadata = variables["metadata"];
    return {{"updateArtifact", {{"artifact", {{"id", variables["artifactID"]}}}}}};
  }
  faults_of_client.push_back("asked for " + operation);
  return {};
}

json FakeWandb::commit(const json& variables) {
  ArtifactVersion* version = find_artifact(variables["artifactID"]);
  version->committed = true;
  json aliases = json::array();
  for (const std::string& alias : version->aliases) aliases.push_back({{"alias", alias}});
  version->aliases.clear();
  point_aliases(*version, aliases);
  return {{"commitArtifact", {{"artifact", {{"id", version->id}, {"digest", version->digest}}}}}};
}

// An alias stands for one version of a name.
void FakeWandb::point_aliases(ArtifactVersion& version, const json& aliases) {
  for (const json& entry : aliases) {
    const std::string alias = entry["alias"];
    for (ArtifactVersion& other : artifacts) {
      if (other.name == version.name && other.committed) std::erase(other.aliases, alias);
    }
    version.aliases.push_back(alias);
  }
}

json FakeWandb::use(const json& input) {
  auto& used = runs[input["runName"]].used_artifacts;
  const std::string id = input["artifactID"];
  if (std::ranges::find(used, id) == used.end()) used.push_back(id);
  return {{"useArtifact", {{"artifact", {{"id", id}}}}}};
}

json FakeWandb::create_run_files(const json& variables) {
  json files = json::array();
  const std::string run_id = variables["run"];
  for (const std::string name : variables["files"]) {
    const std::string url = storage("run/" + run_id + "/" + name);
    upload_places_[url] = [this, run_id, name](const std::string& bytes) {
      runs[run_id].files[name] = bytes;
    };
    files.push_back({{"name", name}, {"uploadUrl", url}});
  }
  return {{"createRunFiles", {{"runID", "x"}, {"uploadHeaders", json::array()}, {"files", files}}}};
}

std::string FakeWandb::storage(const std::string& path) const {
  return (storage_is_proxied ? "http://server/storage/" : "http://storage/") + path;
}

json FakeWandb::resume_status(const json& variables) {
  const auto found = runs.find(variables["name"]);
  if (found == runs.end()) return {{"model", {{"id", "m"}, {"bucket", nullptr}}}};
  const Run& run = found->second;
  std::size_t lines = run.history.size();
  if (!stale_counts.empty()) {
    lines = stale_counts.front();
    stale_counts.pop_front();
  }
  return {{"model",
           {{"id", "m"},
            {"bucket",
             {{"id", run.storage_id},
              {"historyLineCount", lines},
              {"tags", run.variables.value("tags", json(nullptr))},
              {"config", run.variables["config"]}}}}}};
}

json FakeWandb::upsert(const json& variables) {
  const std::string id = variables["name"];
  const bool is_new = !runs.contains(id);
  Run& run = runs[id];
  run.storage_id = "storage-" + id;
  if (run.variables.is_null()) run.variables = variables;
  for (const auto& [key, value] : variables.items()) {
    if (!value.is_null()) run.variables[key] = value;  // null: unchanged
  }
  const json project = {
      {"id", "p"}, {"name", variables["project"]}, {"entity", {{"id", "e"}, {"name", "acme"}}}};
  return {{"upsertBucket",
           {{"inserted", is_new},
            {"bucket",
             {{"id", run.storage_id},
              {"name", id},
              {"displayName", variables["displayName"]},
              {"historyLineCount", run.history.size()},
              {"project", project}}}}}};
}

json FakeWandb::create_artifact(const json& input) {
  const auto client_id = input["clientID"].get<std::string>();
  const auto name = input["artifactCollectionName"].get<std::string>();
  ArtifactVersion* latest = nullptr;
  ArtifactVersion* same = find_client(client_id);
  for (ArtifactVersion& version : artifacts) {
    if (version.name == name && version.committed) latest = &version;
  }
  if (same == nullptr && latest != nullptr && latest->digest == input["digest"].get<std::string>())
    same = latest;
  if (same == nullptr) {
    ArtifactVersion version;
    version.id = "artifact-" + std::to_string(artifacts.size());
    version.name = input["artifactCollectionName"];
    version.client_id = input["clientID"];
    version.digest = input["digest"];
    version.run = input["runName"];
    for (const json& alias : input["aliases"]) {
      version.aliases.push_back(alias["alias"]);
    }
    if (input.contains("tags")) {
      for (const json& tag : input["tags"]) version.tags.push_back(tag["tagName"]);
    }
    version.metadata = input["metadata"].is_string() ? input["metadata"].get<std::string>() : "";
    artifacts.push_back(version);
    same = &artifacts.back();
  }
  return {{"createArtifact",
           {{"artifact",
             {{"id", same->id},
              {"state", same->committed ? "COMMITTED" : "PENDING"},
              {"artifactSequence", {{"latestArtifact", nullptr}}}}}}}};
}

json FakeWandb::create_manifest(const json& variables) {
  const std::string id = variables["artifactID"];
  json file = {{"id", "f"}};
  if (variables["includeUpload"] == true) {
    const std::string url = storage("manifest/" + id);
    upload_places_[url] = [this, id,
                           digest = variables["digest"].get<std::string>()](const std::string& bytes) {
      if (base64_of_hex(md5_hex(bytes)) != digest)
        faults_of_client.push_back("sent another manifest than it said");
      find_artifact(id)->manifest = bytes;
    };
    file["uploadUrl"] = url;
    file["uploadHeaders"] = {"Content-MD5: " + variables["digest"].get<std::string>()};
  }
  return {{"createArtifactManifest", {{"artifactManifest", {{"id", "manifest-" + id}, {"file", file}}}}}};
}

json FakeWandb::create_files(const json& variables) {
  json edges = json::array();
  for (const json& spec : variables["artifactFiles"]) {
    const std::string id = spec["artifactID"];
    const std::string name = spec["name"];
    const std::string md5 = spec["md5"];
    const std::string url = storage("artifact/" + id + "/" + name);
    upload_places_[url] = [this, id, name, md5](const std::string& bytes) {
      if (base64_of_hex(md5_hex(bytes)) != md5) faults_of_client.push_back("sent other bytes than it said");
      find_artifact(id)->files[name] = bytes;
    };
    edges.push_back({{"node",
                      {{"storagePath", "s"},
                       {"uploadUrl", url},
                       {"uploadHeaders", json::array()},
                       {"uploadMultipartUrls", nullptr},
                       {"artifact", {{"id", id}}}}}});
  }
  return {{"createArtifactFiles", {{"files", {{"edges", edges}}}}}};
}

FakeWandb::ArtifactVersion* FakeWandb::find_artifact(const std::string& id) {
  const auto found = std::ranges::find(artifacts, id, &ArtifactVersion::id);
  return found == artifacts.end() ? nullptr : &*found;
}

FakeWandb::ArtifactVersion* FakeWandb::find_client(const std::string& client_id) {
  const auto found = std::ranges::find(artifacts, client_id, &ArtifactVersion::client_id);
  return found == artifacts.end() ? nullptr : &*found;
}

HttpResponse FakeWandb::file_stream(const HttpRequest& request) {
  const std::string id = run_in(request.url);
  if (!runs.contains(id)) return answer(404, "no such run");
  Run& run = runs[id];
  const json body = json::parse(request.body);
  run.exit_code.reset();  // anything brings a run back to life
  if (body.contains("files")) {
    const json& files = body["files"];
    if (files.contains("wandb-history.jsonl")) take_lines(run, files["wandb-history.jsonl"]);
    if (files.contains("wandb-summary.json")) run.summary = files["wandb-summary.json"]["content"].back();
  }
  if (body.contains("uploaded")) {
    for (const std::string name : body["uploaded"]) run.uploaded.push_back(name);
  }
  if (body.contains("preempting")) run.preempting = body["preempting"];
  if (body.value("complete", false)) run.exit_code = body["exitcode"];
  return answer(200, "{}");
}

void FakeWandb::take_lines(Run& run, const json& file) {
  const std::size_t offset = file["offset"];
  const auto lines = file["content"].get<std::vector<std::string>>();
  rows_received += lines.size();
  if (appends) {
    run.history.insert(run.history.end(), lines.begin(), lines.end());
    return;
  }
  if (offset > run.history.size()) faults_of_client.push_back("left a gap in the history");
  run.history.resize(std::max(run.history.size(), offset + lines.size()));
  std::copy(lines.begin(), lines.end(), run.history.begin() + static_cast<std::ptrdiff_t>(offset));
}

std::string FakeWandb::state() const {
  json out;
  for (const auto& [id, run] : runs) {
    out["runs"][id] = {{"variables", run.variables},
                       {"history", run.history},
                       {"summary", run.summary},
                       {"files", run.files},
                       {"used", run.used_artifacts},
                       {"preempting", run.preempting},
                       {"exit", run.exit_code ? json(*run.exit_code) : json(nullptr)}};
    out["runs"][id]["variables"].erase("id");  // known or not
  }
  for (const ArtifactVersion& version : artifacts) {
    out["artifacts"].push_back({version.name, version.client_id, version.digest, version.run,
                                version.manifest, version.aliases, version.tags, version.metadata,
                                version.files, version.committed});
  }
  return out.dump(1);
}

std::size_t FakeWandb::count(const std::string& entry) const {
  return static_cast<std::size_t>(std::ranges::count(log, entry));
}

}  // namespace ranklog::sync::test
