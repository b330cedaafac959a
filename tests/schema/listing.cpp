#include "listing.hpp"

#include <algorithm>
#include <map>
#include <sstream>

namespace ranklog::test {
namespace {

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

Json or_null(const std::optional<std::int64_t>& number) {
  return number ? Json(*number) : Json();
}

// Rows of all streams by sequence number.
std::map<std::uint64_t, Json> rows_of(const RankFile& file) {
  std::map<std::uint64_t, Json> rows;
  for (const Stream stream : kStreams) {
    for (std::size_t i = 0; i < file.row_groups(stream).size(); ++i) {
      const RowGroup group = file.load(i, stream);
      for (std::size_t row = 0; row < group.rows(); ++row) {
        Json values = Json::object();
        for (const Column& column : group.columns) {
          values[file.keys().at(column.key()).display()] = value_to_list(column.at(row));
        }
        rows[group.sequence[row]] =
            row_to_list(stream, group.sequence[row], group.step[row], group.time_ns[row], std::move(values));
      }
    }
  }
  return rows;
}

template <class Record>
void add_all(Listing& listing, const std::string& name, const char* what,
             const std::vector<Record>& records) {
  for (const Record& record : records) listing.push_back({{"file", name}, {what, to_list(record)}});
}

}  // namespace

Json text_to_list(std::string_view text) {
  const std::string whole(text);
  // Through our own parser of JSON, which takes UTF-8 alone.
  try {
    (void)Json(whole).dump();
    return whole;
  } catch (const Json::exception&) {
    return {{"hex", hex(text)}};
  }
}

Json value_to_list(ValueView value) {
  const int kind = static_cast<int>(value.kind());
  if (value.has_text()) return {kind, text_to_list(value.text())};
  return {kind, value.kind() == ValueKind::kNull ? 0 : value.bits()};
}

Json meta_to_list(const FileInfo& info) {
  const Identity& id = info.identity;
  return {{"project", id.project},
          {"experiment", id.experiment},
          {"entity", id.entity},
          {"group", id.group},
          {"job_type", id.job_type},
          {"name", id.name},
          {"notes", id.notes},
          {"tags", id.tags},
          {"wandb_run_id", id.wandb_run_id},
          {"log_strategy", id.log_strategy ? Json(to_string(*id.log_strategy)) : Json()},
          {"rank", id.rank},
          {"local_rank", id.local_rank},
          {"world_size", id.world_size},
          {"local_world_size", id.local_world_size},
          {"node", id.node},
          {"launch_token", id.launch_token},
          {"resume_step", or_null(id.resume_step)},
          {"host", id.host},
          {"pid", id.pid},
          {"pid_start_ticks", id.pid_start_ticks},
          {"program", id.program},
          {"arguments", id.arguments},
          {"git_commit", id.git_commit},
          {"git_remote", id.git_remote},
          {"libraries", id.libraries},
          {"host_facts", id.host_facts},
          {"start_time_ns", info.start_time_ns},
          {"end_time_ns", or_null(info.end_time_ns)},
          {"end_state", info.end_state ? Json(to_string(*info.end_state)) : Json()},
          {"exit_code", info.exit_code ? Json(*info.exit_code) : Json()}};
}

Json row_to_list(Stream stream, std::uint64_t sequence, std::int64_t step, std::int64_t time_ns,
                 Json values) {
  return {{"stream", index_of(stream)},
          {"sequence", sequence},
          {"step", step},
          {"time_ns", time_ns},
          {"values", std::move(values)}};
}

Json to_list(const ConfigEntry& entry) {
  return {entry.key, entry.json};
}
Json to_list(const SummaryOverride& entry) {
  return {entry.key, entry.json};
}
Json to_list(const MetricDefinition& metric) {
  return {metric.name, metric.step_metric, metric.hidden, metric.step_sync, metric.summary, metric.goal};
}
Json to_list(const Event& event) {
  return {event.sequence, event.time_ns, or_null(event.step), event.kind, event.json};
}
Json to_list(const Artifact& artifact) {
  Json files = Json::array();
  for (const ArtifactFile& file : artifact.files) {
    files.push_back({file.name, file.path, file.size, file.md5, file.sha256, file.reference, file.json});
  }
  return {artifact.sequence,
          artifact.time_ns,
          artifact.name,
          artifact.type,
          artifact.description,
          or_null(artifact.step),
          or_null(artifact.ttl_seconds),
          artifact.aliases,
          artifact.tags,
          artifact.metadata_json,
          files};
}
Json to_list(const RunFile& file) {
  return {file.sequence, file.time_ns, file.name, file.path, file.size, file.md5, file.sha256, file.kind};
}

Listing list_file(const std::filesystem::path& path) {
  const RankFile file = RankFile::open(path);
  const std::string name = path.filename().string();
  Listing listing = {{{"file", name}, {"meta", meta_to_list(file.info())}}};
  for (const KeyPath& key : file.keys()) listing.push_back({{"file", name}, {"key", key.display()}});
  for (auto& [sequence, row] : rows_of(file)) listing.push_back({{"file", name}, {"row", std::move(row)}});
  add_all(listing, name, "config", file.config());
  add_all(listing, name, "metric", file.metric_definitions());
  add_all(listing, name, "summary", file.summary_overrides());
  add_all(listing, name, "event", file.events());
  add_all(listing, name, "artifact", file.artifacts());
  add_all(listing, name, "run_file", file.files());
  for (const Damage& damage : file.damage()) {
    listing.push_back({{"file", name}, {"damage", damage.place + ": " + damage.reason}});
  }
  return listing;
}

Listing list_history(const std::filesystem::path& folder) {
  const ScanResult found = scan(std::vector<std::filesystem::path>{folder});
  RankHistory history(found.experiments.at(0), 0);
  Listing listing;
  HistoryRow row;
  while (history.next(row)) {
    Json values = Json::object();
    for (const HistoryCell& cell : row.cells) {
      values[history.keys()[cell.key].display()] = value_to_list(cell.value);
    }
    listing.push_back({{"history", {row.step, row.time_ns, row.attempt, std::move(values)}}});
  }
  listing.push_back({{"superseded_rows", history.counts().superseded_rows}});
  return listing;
}

std::string to_lines(const Listing& listing) {
  std::string lines;
  for (const Json& line : listing) lines += line.dump() + "\n";
  return lines;
}

Listing parse_lines(std::string_view lines) {
  Listing listing;
  std::istringstream in{std::string(lines)};
  for (std::string line; std::getline(in, line);) listing.push_back(Json::parse(line));
  return listing;
}

}  // namespace ranklog::test
