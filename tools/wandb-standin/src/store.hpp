#pragma once
// Everything the server holds, and the folder that keeps it:
//   standin.json
//   <entity>/<project>/project.json
//   <entity>/<project>/runs/<run>/...             run.hpp
//   <entity>/<project>/artifacts/<collection>/... artifact.hpp
//   <entity>/<project>/content/<hex MD5>          bytes of artifact files, each content once
//
// Threads: one at a time; the server's mutex guards it.

#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "artifact.hpp"
#include "clock.hpp"
#include "run.hpp"

namespace ranklog::standin {

struct Content {
  std::uint64_t size = 0;
  std::string birth_artifact_id;  // the first artifact that brought it
};

struct Project {
  std::string id;
  long long number = 0;
  std::string entity;
  std::string name;
  Json description;
  long long created_at_ms = 0;
  std::set<std::string> deleted_runs;  // their IDs stay reserved
  std::map<std::string, Run> runs;
  std::map<std::string, Collection> collections;
  std::map<std::string, Content> contents;  // by hex MD5
  std::filesystem::path folder;

  [[nodiscard]] Run* find_run(const std::string& run_name);
  [[nodiscard]] Collection* find_collection(const std::string& collection_name);
  [[nodiscard]] std::filesystem::path content_path(const std::string& md5_hex) const;
  void save() const;
};

// An artifact with what it belongs to.
struct ArtifactPlace {
  Project* project = nullptr;
  Collection* collection = nullptr;
  Artifact* artifact = nullptr;

  explicit operator bool() const noexcept { return artifact != nullptr; }
};

class Store {
 public:
  // Takes over what the folder holds; creates it if need be. Throws ranklog::Error.
  explicit Store(std::filesystem::path folder);

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  [[nodiscard]] std::map<std::string, Project>& projects() noexcept { return projects_; }

  [[nodiscard]] Project* find_project(const std::string& entity, const std::string& name);
  Project& create_project(const std::string& entity, const std::string& name, long long now_ms);
  Run& create_run(Project& project, const std::string& name, long long now_ms);
  void delete_run(Project& project, const std::string& name);
  [[nodiscard]] Run* find_run_by_id(const std::string& node_id);

  Collection& create_collection(Project& project, const std::string& name, const std::string& type,
                                long long now_ms);
  // Gives it number, ID and folder.
  Artifact& add_artifact(Collection& collection, Artifact artifact);
  [[nodiscard]] ArtifactPlace find_artifact(const std::string& node_id);
  [[nodiscard]] ArtifactPlace find_client_id(const std::string& client_id);
  [[nodiscard]] ArtifactPlace find_manifest(const std::string& manifest_id);

 private:
  void load();
  void load_project(const std::filesystem::path& folder);
  template <typename Predicate>
  ArtifactPlace find_artifact_where(const Predicate& predicate);

  std::filesystem::path folder_;
  std::map<std::string, Project> projects_;  // by "<entity>/<project>"
  long long last_artifact_number_ = 0;
  long long last_project_number_ = 0;
};

// "Artifact:12" in base64, as W&B's node IDs are made.
[[nodiscard]] std::string node_id(const std::string& plain);

}  // namespace ranklog::standin
