#include "run.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "disk.hpp"
#include "loose_json.hpp"
#include "ranklog/schema/error.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

constexpr std::size_t kMaxAnomalies = 100;

constexpr std::array<std::pair<const char*, const char*>, 3> kStreams = {
    {{kHistoryFile, "history.jsonl"}, {kEventsFile, "events.jsonl"}, {kConsoleFile, "output.log"}}};

Json to_json(const RunFacts& facts) {
  return {{"id", facts.id},
          {"name", facts.name},
          {"entity", facts.entity},
          {"project", facts.project},
          {"attributes", facts.attributes},
          {"tags", facts.tags},
          {"created_at", format_time(facts.created_at_ms)},
          {"heartbeat_at", format_time(facts.heartbeat_at_ms)},
          {"complete", facts.complete},
          {"exit_code", facts.exit_code},
          {"preempting", facts.preempting},
          {"uploaded", facts.uploaded},
          {"used_artifacts", facts.used_artifacts},
          {"anomalies", facts.anomalies},
          {"more_anomalies", facts.more_anomalies}};
}

RunFacts facts_from_json(const Json& json) {
  RunFacts facts;
  facts.id = json.at("id");
  facts.name = json.at("name");
  facts.entity = json.at("entity");
  facts.project = json.at("project");
  facts.attributes = json.at("attributes");
  facts.tags = json.at("tags");
  facts.created_at_ms = parse_time(json.at("created_at")).value_or(0);
  facts.heartbeat_at_ms = parse_time(json.at("heartbeat_at")).value_or(0);
  facts.complete = json.at("complete");
  facts.exit_code = json.at("exit_code");
  facts.preempting = json.at("preempting");
  facts.uploaded = json.at("uploaded");
  facts.used_artifacts = json.at("used_artifacts");
  facts.anomalies = json.at("anomalies");
  facts.more_anomalies = json.at("more_anomalies");
  return facts;
}

RowFacts facts_of_row(const std::string& line) {
  const auto row = parse_loose(line);
  if (!row || !row->is_object()) return {};
  const auto step = row->find("_step");
  if (step == row->end() || !step->is_number_integer()) return {true, std::nullopt};
  return {true, step->get<std::int64_t>()};
}

std::string text_or_empty_object(const std::filesystem::path& path) {
  std::string text = read_text(path).value_or("{}");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

Run::Run(std::filesystem::path folder, RunFacts given) : facts(std::move(given)), folder_(std::move(folder)) {
  open_lines(Json::object());
}

Run Run::load(const std::filesystem::path& folder) {
  Run run(folder);
  const auto json = read_json(folder / "run.json");
  try {
    if (!json) throw Error(ErrorCode::kDamaged, "it is missing");
    run.facts = facts_from_json(*json);
    run.open_lines(json->at("holes"));
  } catch (const std::exception& problem) {
    throw Error(ErrorCode::kDamaged, (folder / "run.json").string() + " cannot be read: " + problem.what());
  }
  run.config_ = text_or_empty_object(folder / "config.json");
  run.summary_ = text_or_empty_object(folder / "summary.json");
  return run;
}

void Run::open_lines(const Json& holes) {
  for (const auto& [stream, file] : kStreams) {
    std::set<std::uint64_t> missing;
    if (holes.contains(stream)) missing = holes.at(stream).get<std::set<std::uint64_t>>();
    lines_.emplace(stream, LineFile(folder_ / file, std::move(missing)));
  }
}

std::filesystem::path Run::file_path(const std::string& name) const {
  return folder_ / "files" / safe_relative_path(name);
}

std::vector<std::string> Run::file_names() const {
  return decoded_names_below(folder_ / "files");
}

LineFile& Run::lines(const std::string& stream) {
  const auto found = lines_.find(stream);
  if (found == lines_.end()) throw ApiError(400, "file_stream knows no file \"" + stream + "\"");
  return found->second;
}

const LineFile& Run::lines(const std::string& stream) const {
  return lines_.at(stream);
}

const std::vector<RowFacts>& Run::rows() const {
  const LineFile& history = lines(kHistoryFile);
  while (rows_.size() < history.count()) rows_.push_back(facts_of_row(history.line(rows_.size())));
  return rows_;
}

void Run::refresh_row(std::uint64_t number) {
  if (number < rows_.size()) rows_[number] = facts_of_row(lines(kHistoryFile).line(number));
}

void Run::set_config(const std::string& text) {
  const auto config = parse_loose(text);
  if (!config || !config->is_object()) throw ApiError(400, "config is not a JSON object");
  for (const auto& [key, entry] : config->items()) {
    if (!entry.is_object() || !entry.contains("value")) {
      note_anomaly("config key \"" + key + "\" is not of the form {\"value\": ...}");
    }
  }
  config_ = text;
  write_text(folder_ / "config.json", text + "\n");
}

void Run::set_summary(const std::string& text) {
  const auto summary = parse_loose(text);
  if (!summary || !summary->is_object()) throw ApiError(400, "the summary is not a JSON object");
  summary_ = text;
  write_text(folder_ / "summary.json", text + "\n");
}

std::string Run::state(long long now_ms, std::chrono::milliseconds crash_after) const {
  if (facts.complete) {
    if (facts.exit_code == 0) return "finished";
    return facts.preempting ? "preempted" : "failed";
  }
  return now_ms - facts.heartbeat_at_ms > crash_after.count() ? "crashed" : "running";
}

void Run::note_uploaded(const std::string& name) {
  if (std::find(facts.uploaded.begin(), facts.uploaded.end(), name) == facts.uploaded.end()) {
    facts.uploaded.push_back(name);
  }
  if (!std::filesystem::exists(file_path(name))) {
    note_anomaly("told of the uploaded file \"" + name + "\", which never came");
  }
}

void Run::note_anomaly(const std::string& what) {
  if (facts.anomalies.size() >= kMaxAnomalies) {
    ++facts.more_anomalies;
  } else if (std::find(facts.anomalies.begin(), facts.anomalies.end(), what) == facts.anomalies.end()) {
    facts.anomalies.push_back(what);
  }
}

void Run::save() {
  Json json = to_json(facts);
  json["holes"] = Json::object();
  json["lines"] = Json::object();
  for (auto& [stream, file] : lines_) {
    file.flush();
    json["lines"][stream] = file.count();
    if (!file.holes().empty()) json["holes"][stream] = file.holes();
  }
  write_json(folder_ / "run.json", json);
}

}  // namespace ranklog::standin
