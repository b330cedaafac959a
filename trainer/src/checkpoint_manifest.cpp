#include "checkpoint_manifest.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace ranklog {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const CheckpointFile& file) {
  return {{"name", file.name},
          {"size", file.digests.size},
          {"md5", file.digests.md5},
          {"sha256", file.digests.sha256}};
}

CheckpointFile file_from(const Json& json) {
  CheckpointFile file;
  json.at("name").get_to(file.name);
  json.at("size").get_to(file.digests.size);
  json.at("md5").get_to(file.digests.md5);
  json.at("sha256").get_to(file.digests.sha256);
  return file;
}

}  // namespace

std::string write_manifest(const CheckpointManifest& manifest) {
  Json metrics = Json::object();
  for (const auto& [name, value] : manifest.metrics) {
    if (std::isfinite(value)) metrics[name] = value;  // JSON has no word for the others
  }
  Json files = Json::array();
  for (const CheckpointFile& file : manifest.files) files.push_back(to_json(file));
  const Json json = {{"format", kCheckpointFormat},
                     {"step", manifest.step},
                     {"epoch", manifest.epoch},
                     {"world_size", manifest.world_size},
                     {"time_ns", manifest.time_ns},
                     {"metrics", metrics},
                     {"ranks_without_durable_log", manifest.ranks_without_durable_log},
                     {"aliases", manifest.aliases},
                     {"files", files}};
  return json.dump(2) + "\n";
}

CheckpointManifest parse_manifest(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("format") != kCheckpointFormat) {
      throw Error(ErrorCode::kVersion, "it has format " + json.at("format").dump() + ", this program reads " +
                                           std::to_string(kCheckpointFormat));
    }
    CheckpointManifest manifest;
    json.at("step").get_to(manifest.step);
    json.at("epoch").get_to(manifest.epoch);
    json.at("world_size").get_to(manifest.world_size);
    json.at("time_ns").get_to(manifest.time_ns);
    for (const auto& [name, value] : json.at("metrics").items()) value.get_to(manifest.metrics[name]);
    json.at("ranks_without_durable_log").get_to(manifest.ranks_without_durable_log);
    manifest.aliases = json.value("aliases", std::vector<std::string>{});
    for (const Json& file : json.at("files")) manifest.files.push_back(file_from(file));
    return manifest;
  } catch (const Json::exception& e) {
    throw Error(ErrorCode::kDamaged, std::string("it is no manifest: ") + e.what());
  }
}

}  // namespace ranklog
