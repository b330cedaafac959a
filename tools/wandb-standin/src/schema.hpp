#pragma once
// The GraphQL schema: the root objects, and the objects that several parts of it share.

#include "service.hpp"

namespace ranklog::standin {

// Both hold references into `scope`'s service; use them within the request.
[[nodiscard]] ObjectPtr query_root(const Scope& scope);
[[nodiscard]] ObjectPtr mutation_root(const Scope& scope);

// query_project.cpp
[[nodiscard]] ObjectPtr entity_object(const std::string& name);
[[nodiscard]] ObjectPtr project_object(const Scope& scope, Project& project);
// query_run.cpp
[[nodiscard]] ObjectPtr run_object(const Scope& scope, Project& project, Run& run);
// query_artifact.cpp
[[nodiscard]] ObjectPtr artifact_object(const Scope& scope, ArtifactPlace place);
[[nodiscard]] ObjectPtr collection_object(const Scope& scope, Project& project, Collection& collection);
[[nodiscard]] ObjectPtr artifact_type_object(const Scope& scope, Project& project, const std::string& type);
[[nodiscard]] ObjectPtr membership_object(const Scope& scope, ArtifactPlace place);
// artifact_manifests.cpp
[[nodiscard]] ObjectPtr manifest_object(const Scope& scope, ArtifactPlace place, ManifestFacts& manifest);

// mutate_run.cpp, mutate_artifact.cpp, artifact_manifests.cpp, artifact_files.cpp
void add_run_mutations(Object& root, const Scope& scope);
void add_artifact_mutations(Object& root, const Scope& scope);
void add_artifact_manifest_mutations(Object& root, const Scope& scope);
void add_artifact_file_mutations(Object& root, const Scope& scope);

// artifact_commit.cpp: checks all that the manifests promise, then makes it a version.
void commit_artifact(const Scope& scope, ArtifactPlace place);

}  // namespace ranklog::standin
