#pragma once
// The server without its HTTP side: state, settings and the GraphQL schema.
//
// Threads: one at a time (the caller's mutex).

#include <chrono>
#include <string>
#include <vector>

#include "clock.hpp"
#include "graphql_object.hpp"
#include "store.hpp"
#include "uploads.hpp"

namespace ranklog::standin {

struct Settings {
  // The first is the default entity. With none given every entity is accepted.
  std::vector<std::string> entities;
  std::string api_key;  // empty: every key of valid shape
  std::chrono::milliseconds crash_after = std::chrono::minutes(5);

  [[nodiscard]] std::string default_entity() const {
    return entities.empty() ? "rehearsal" : entities.front();
  }
  // The official client's sync of an offline run that was told no entity sends an empty one.
  [[nodiscard]] std::string entity_or_default(const std::string& entity) const {
    return entity.empty() ? default_entity() : entity;
  }
  [[nodiscard]] bool knows_entity(const std::string& entity) const;
};

struct Service {
  Settings settings;
  Clock clock;
  Store store;
  Uploads uploads;

  Service(const std::filesystem::path& folder, Settings given);

  // `request` is the body of POST /graphql, `base_url` what the client called the server. Returns the whole
  // answer. Throws ApiError.
  [[nodiscard]] Json graphql(const Json& request, const std::string& base_url);
  // Applies a file_stream body. Throws ApiError.
  [[nodiscard]] Json file_stream(const std::string& entity, const std::string& project,
                                 const std::string& run, const Json& body);
  void advance_clock(std::chrono::milliseconds by);
  // Crash limit and clock, for who reads the folder later.
  void save_settings() const;
};

// Of a POST /graphql body: "operationName", or else the first name in the query text. May be empty.
[[nodiscard]] std::string operation_name(const Json& request);

// What standin.json says; defaults where there is none.
struct SavedSettings {
  std::chrono::milliseconds crash_after = std::chrono::minutes(5);
  long long clock_offset_ms = 0;
};
[[nodiscard]] SavedSettings read_saved_settings(const std::filesystem::path& folder);

// One GraphQL request's surroundings, given to the resolvers.
struct Scope {
  Service& service;
  std::string base_url;

  [[nodiscard]] long long now() const { return service.clock.now(); }
  [[nodiscard]] Store& store() const { return service.store; }
  // An absolute address of a ticket.
  [[nodiscard]] std::string url(const std::string& path) const { return base_url + path; }
};

// Throw ApiError(404). An empty entity is the default one.
Project& require_project(const Scope& scope, const std::string& entity, const std::string& project);
Run& require_run(const Scope& scope, const std::string& entity, const std::string& project,
                 const std::string& run);
ArtifactPlace require_artifact(const Scope& scope, const std::string& node_id);

// The members of an input object. Throw ApiError(400) naming the key.
[[nodiscard]] std::string required_text(const Json& input, const char* key);
[[nodiscard]] std::string text_or(const Json& input, const char* key, const std::string& fallback);
// Refuses keys that the input type does not have, as a GraphQL server does.
void check_input(const std::string& type, const Json& input, const std::vector<std::string>& known);
// The argument "input" of a mutation.
[[nodiscard]] Json input_of(const Json& arguments);

}  // namespace ranklog::standin
