#include "operation_json.hpp"

#include <nlohmann/json.hpp>

#include "ranklog/schema/error.hpp"

namespace ranklog {
namespace {

using Json = nlohmann::json;

// The names below are on disk, in the tail. An optional number is absent rather than null.

void put_step(Json& json, const std::optional<std::int64_t>& step) {
  if (step) json["step"] = *step;
}
std::optional<std::int64_t> get_optional(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return std::nullopt;
  return found->get<std::int64_t>();
}

Json to_json(const ConfigEntry& entry) {
  return {{"key", entry.key}, {"json", entry.json}};
}
Json to_json(const SummaryOverride& entry) {
  return {{"key", entry.key}, {"json", entry.json}};
}
Json to_json(const MetricDefinition& metric) {
  return {{"name", metric.name},           {"step_metric", metric.step_metric}, {"hidden", metric.hidden},
          {"step_sync", metric.step_sync}, {"summary", metric.summary},         {"goal", metric.goal}};
}
Json to_json(const Event& event) {
  Json json = {{"kind", event.kind}, {"json", event.json}};
  put_step(json, event.step);
  return json;
}
Json to_json(const ArtifactFile& file) {
  return {{"name", file.name},     {"path", file.path},           {"size", file.size}, {"md5", file.md5},
          {"sha256", file.sha256}, {"reference", file.reference}, {"json", file.json}};
}
Json to_json(const Artifact& artifact) {
  Json files = Json::array();
  for (const ArtifactFile& file : artifact.files) files.push_back(to_json(file));
  Json json = {{"name", artifact.name},       {"type", artifact.type}, {"description", artifact.description},
               {"aliases", artifact.aliases}, {"tags", artifact.tags}, {"metadata", artifact.metadata_json},
               {"files", std::move(files)}};
  put_step(json, artifact.step);
  if (artifact.ttl_seconds) json["ttl_seconds"] = *artifact.ttl_seconds;
  return json;
}
Json to_json(const RunFile& file) {
  return {{"name", file.name}, {"path", file.path},     {"size", file.size},
          {"md5", file.md5},   {"sha256", file.sha256}, {"kind", file.kind}};
}

void from_json(const Json& json, ConfigEntry& entry) {
  entry = {json.at("key"), json.at("json")};
}
void from_json(const Json& json, SummaryOverride& entry) {
  entry = {json.at("key"), json.at("json")};
}
void from_json(const Json& json, MetricDefinition& metric) {
  metric.name = json.at("name");
  metric.step_metric = json.at("step_metric");
  metric.hidden = json.at("hidden");
  metric.step_sync = json.at("step_sync");
  metric.summary = json.at("summary").get<std::vector<std::string>>();
  metric.goal = json.at("goal");
}
void from_json(const Json& json, Event& event) {
  event.kind = json.at("kind");
  event.json = json.at("json");
  event.step = get_optional(json, "step");
}
void from_json(const Json& json, ArtifactFile& file) {
  file.name = json.at("name");
  file.path = json.at("path");
  file.size = json.at("size");
  file.md5 = json.at("md5");
  file.sha256 = json.at("sha256");
  file.reference = json.at("reference");
  file.json = json.at("json");
}
void from_json(const Json& json, Artifact& artifact) {
  artifact.name = json.at("name");
  artifact.type = json.at("type");
  artifact.description = json.at("description");
  artifact.step = get_optional(json, "step");
  artifact.ttl_seconds = get_optional(json, "ttl_seconds");
  artifact.aliases = json.at("aliases").get<std::vector<std::string>>();
  artifact.tags = json.at("tags").get<std::vector<std::string>>();
  artifact.metadata_json = json.at("metadata");
  for (const Json& file : json.at("files")) from_json(file, artifact.files.emplace_back());
}
void from_json(const Json& json, RunFile& file) {
  file.name = json.at("name");
  file.path = json.at("path");
  file.size = json.at("size");
  file.md5 = json.at("md5");
  file.sha256 = json.at("sha256");
  file.kind = json.at("kind");
}

template <std::size_t Index>
OperationBody read_body(const Json& json) {
  std::variant_alternative_t<Index, OperationBody> body;
  from_json(json, body);
  return body;
}

OperationBody read_body(std::size_t index, const Json& json) {
  switch (index) {
    case 0:
      return read_body<0>(json);
    case 1:
      return read_body<1>(json);
    case 2:
      return read_body<2>(json);
    case 3:
      return read_body<3>(json);
    case 4:
      return read_body<4>(json);
    case 5:
      return read_body<5>(json);
    default:
      throw Error(ErrorCode::kDamaged, "unknown operation");
  }
}
static_assert(std::variant_size_v<OperationBody> == 6, "read_body() has a case for each");

}  // namespace

std::string operation_to_json(const OperationBody& body) {
  const Json json = std::visit([](const auto& alternative) { return to_json(alternative); }, body);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

OperationBody operation_from_json(std::size_t index, std::string_view json) {
  try {
    return read_body(index, Json::parse(json));
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kDamaged, std::string("the operation's JSON cannot be read: ") + error.what());
  }
}

}  // namespace ranklog
