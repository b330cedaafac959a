#include "ranklog/trainer/agreement.hpp"

#include <nlohmann/json.hpp>

#include "network.hpp"

namespace ranklog {
namespace {

using Json = nlohmann::ordered_json;

void put(Json& json, const char* name, const std::optional<int>& value) {
  if (value) json[name] = *value;
}

std::optional<int> take(const Json& json, const char* name) {
  return json.contains(name) ? std::optional(json.at(name).get<int>()) : std::nullopt;
}

std::string write_statement(const RankStatement& statement) {
  Json json = {{"rank", statement.place.rank},
               {"world_size", statement.place.world_size},
               {"host", statement.host},
               {"restarts", statement.restarts}};
  put(json, "local_rank", statement.place.local_rank);
  put(json, "local_world_size", statement.place.local_world_size);
  put(json, "node", statement.place.node);
  for (const auto& [name, value] : statement.settings) json["settings"].push_back({name, value});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

RankStatement parse_statement(const std::string& text) {
  const Json json = Json::parse(text);
  RankStatement statement;
  json.at("rank").get_to(statement.place.rank);
  json.at("world_size").get_to(statement.place.world_size);
  json.at("host").get_to(statement.host);
  json.at("restarts").get_to(statement.restarts);
  statement.place.local_rank = take(json, "local_rank");
  statement.place.local_world_size = take(json, "local_world_size");
  statement.place.node = take(json, "node");
  if (json.contains("settings")) {
    for (const Json& setting : json.at("settings")) {
      statement.settings.emplace_back(setting.at(0).get<std::string>(), setting.at(1).get<std::string>());
    }
  }
  return statement;
}

std::string shown(const std::string& name, const std::string& value) {
  return value.empty() ? "without " + name : "with " + name + " " + value;
}

}  // namespace

std::vector<RankStatement> exchange_statements(RankStatement mine, Communicator& communicator) {
  mine.host = own_host_name();
  std::vector<RankStatement> by_rank;
  for (const std::string& text : communicator.all_gather(write_statement(mine))) {
    try {
      by_rank.push_back(parse_statement(text));
    } catch (const Json::exception&) {
      throw Error(ErrorCode::kUsage,
                  "rank " + std::to_string(by_rank.size()) + " does not state its settings as this rank does",
                  "start the same program on every rank");
    }
  }
  return by_rank;
}

void require_equal_settings(std::span<const RankStatement> by_rank) {
  const auto& expected = by_rank.front().settings;
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    const auto& found = by_rank[rank].settings;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (i < found.size() && found[i] == expected[i]) continue;
      const std::string theirs = i < found.size() ? found[i].second : "";
      throw Error(ErrorCode::kUsage,
                  "rank " + std::to_string(rank) + " was started " + shown(expected[i].first, theirs) +
                      ", and rank 0 " + shown(expected[i].first, expected[i].second),
                  "start every rank with the same settings");
    }
  }
}

}  // namespace ranklog
