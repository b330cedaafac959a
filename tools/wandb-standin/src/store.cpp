#include "store.hpp"

#include <algorithm>

#include "disk.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/schema/naming.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

constexpr const char* kProjectFile = "project.json";

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  if (!fs::is_directory(folder)) return folders;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// The first artifact, by number, that announced each content.
std::map<std::string, std::string> births(const Project& project) {
  std::map<std::string, std::pair<long long, std::string>> first;
  for (const auto& [name, collection] : project.collections) {
    for (const auto& [number, artifact] : collection.artifacts) {
      for (const auto& [path, md5] : artifact.files) {
        const std::string key = hex_of(base64_decode(md5).value_or(""));
        const auto [entry, is_new] = first.try_emplace(key, number, artifact.id);
        if (!is_new && number < entry->second.first) entry->second = {number, artifact.id};
      }
    }
  }
  std::map<std::string, std::string> ids;
  for (const auto& [md5, birth] : first) ids[md5] = birth.second;
  return ids;
}

void load_contents(Project& project) {
  const fs::path folder = project.folder / "content";
  if (!fs::is_directory(folder)) return;
  const auto birth_of = births(project);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string md5 = entry.path().filename().string();
    const auto birth = birth_of.find(md5);
    project.contents[md5] = {entry.file_size(), birth == birth_of.end() ? "" : birth->second};
  }
}

}  // namespace

std::string node_id(const std::string& plain) {
  return base64(plain);
}

Run* Project::find_run(const std::string& run_name) {
  const auto found = runs.find(run_name);
  return found == runs.end() ? nullptr : &found->second;
}

Collection* Project::find_collection(const std::string& collection_name) {
  const auto found = collections.find(collection_name);
  return found == collections.end() ? nullptr : &found->second;
}

fs::path Project::content_path(const std::string& md5_hex) const {
  return folder / "content" / md5_hex;
}

void Project::save() const {
  write_json(folder / kProjectFile, {{"id", id},
                                     {"number", number},
                                     {"entity", entity},
                                     {"name", name},
                                     {"description", description},
                                     {"created_at", format_time(created_at_ms)},
                                     {"deleted_runs", deleted_runs}});
}

Store::Store(fs::path folder) : folder_(std::move(folder)) {
  make_folder(folder_);
  load();
}

void Store::load() {
  for (const fs::path& entity : folders_in(folder_)) {
    for (const fs::path& project : folders_in(entity)) {
      if (fs::exists(project / kProjectFile)) load_project(project);
    }
  }
}

void Store::load_project(const fs::path& folder) {
  Project project;
  project.folder = folder;
  try {
    const Json json = read_json(folder / kProjectFile).value();
    project.id = json.at("id");
    project.number = json.at("number");
    project.entity = json.at("entity");
    project.name = json.at("name");
    project.description = json.at("description");
    project.created_at_ms = parse_time(json.at("created_at")).value_or(0);
    project.deleted_runs = json.at("deleted_runs").get<std::set<std::string>>();
  } catch (const std::exception& problem) {
    throw Error(ErrorCode::kDamaged, (folder / kProjectFile).string() + " cannot be read: " + problem.what());
  }
  for (const fs::path& run_folder : folders_in(folder / "runs")) {
    Run run = Run::load(run_folder);
    const std::string name = run.facts.name;
    project.runs.emplace(name, std::move(run));
  }
  for (const fs::path& collection_folder : folders_in(folder / "artifacts")) {
    Collection collection = Collection::load(collection_folder);
    for (const auto& [number, artifact] : collection.artifacts) {
      last_artifact_number_ = std::max(last_artifact_number_, number);
    }
    project.collections.emplace(collection.name, std::move(collection));
  }
  load_contents(project);
  last_project_number_ = std::max(last_project_number_, project.number);
  projects_.emplace(project.entity + "/" + project.name, std::move(project));
}

Project* Store::find_project(const std::string& entity, const std::string& name) {
  const auto found = projects_.find(entity + "/" + name);
  return found == projects_.end() ? nullptr : &found->second;
}

Project& Store::create_project(const std::string& entity, const std::string& name, long long now_ms) {
  Project project;
  project.number = ++last_project_number_;
  project.id = node_id("Project:v1:" + name + ":" + entity);
  project.entity = entity;
  project.name = name;
  project.created_at_ms = now_ms;
  project.folder = folder_ / encode_file_name(entity) / encode_file_name(name);
  project.save();
  return projects_.emplace(entity + "/" + name, std::move(project)).first->second;
}

Run& Store::create_run(Project& project, const std::string& name, long long now_ms) {
  RunFacts facts;
  facts.id = node_id("Run:v1:" + name + ":" + project.name + ":" + project.entity);
  facts.name = name;
  facts.entity = project.entity;
  facts.project = project.name;
  facts.created_at_ms = facts.heartbeat_at_ms = now_ms;
  Run run(project.folder / "runs" / encode_file_name(name), std::move(facts));
  run.save();
  return project.runs.emplace(name, std::move(run)).first->second;
}

void Store::delete_run(Project& project, const std::string& name) {
  Run& run = project.runs.at(name);
  std::error_code error;
  fs::remove_all(run.folder(), error);
  if (error) {
    throw Error(ErrorCode::kIo, "cannot remove " + run.folder().string() + ": " + error.message());
  }
  project.deleted_runs.insert(name);
  project.runs.erase(name);
  project.save();
}

Run* Store::find_run_by_id(const std::string& wanted) {
  for (auto& [key, project] : projects_) {
    for (auto& [name, run] : project.runs) {
      if (run.facts.id == wanted) return &run;
    }
  }
  return nullptr;
}

Collection& Store::create_collection(Project& project, const std::string& name, const std::string& type,
                                     long long now_ms) {
  Collection collection;
  collection.name = name;
  collection.type = type;
  collection.id = node_id("ArtifactCollection:" + std::to_string(project.number) + ":" + name);
  collection.created_at_ms = now_ms;
  collection.folder = project.folder / "artifacts" / encode_file_name(name);
  collection.save();
  return project.collections.emplace(name, std::move(collection)).first->second;
}

Artifact& Store::add_artifact(Collection& collection, Artifact artifact) {
  artifact.number = ++last_artifact_number_;
  artifact.id = node_id("Artifact:" + std::to_string(artifact.number));
  artifact.folder = collection.folder / ("pending-" + std::to_string(artifact.number));
  artifact.save();
  return collection.artifacts.emplace(artifact.number, std::move(artifact)).first->second;
}

template <typename Predicate>
ArtifactPlace Store::find_artifact_where(const Predicate& predicate) {
  for (auto& [key, project] : projects_) {
    for (auto& [name, collection] : project.collections) {
      for (auto& [number, artifact] : collection.artifacts) {
        if (predicate(artifact)) return {&project, &collection, &artifact};
      }
    }
  }
  return {};
}

ArtifactPlace Store::find_artifact(const std::string& wanted) {
  return find_artifact_where([&](const Artifact& one) { return one.id == wanted; });
}

ArtifactPlace Store::find_client_id(const std::string& client_id) {
  if (client_id.empty()) return {};
  return find_artifact_where([&](const Artifact& one) { return one.client_id == client_id; });
}

ArtifactPlace Store::find_manifest(const std::string& manifest_id) {
  return find_artifact_where([&](Artifact& one) { return one.manifest(manifest_id) != nullptr; });
}

}  // namespace ranklog::standin
