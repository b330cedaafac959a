#include "rank_schema.hpp"

#include <limits>
#include <nlohmann/json.hpp>

namespace ranklog {
namespace {

// Comments inside the statements stay in the file, for who looks at it with `.schema`.
constexpr const char* kTables = R"sql(
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE config(key TEXT PRIMARY KEY, position INTEGER NOT NULL, json TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE metric(name TEXT PRIMARY KEY, position INTEGER NOT NULL, step_metric TEXT NOT NULL,
  hidden INTEGER NOT NULL, step_sync INTEGER NOT NULL, summary TEXT NOT NULL, goal TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE summary(key TEXT PRIMARY KEY, position INTEGER NOT NULL, json TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE key(id INTEGER PRIMARY KEY, path TEXT NOT NULL);
CREATE TABLE chunk(id INTEGER PRIMARY KEY,
  stream INTEGER NOT NULL, -- 0 history, 1 system metrics, 2 console
  rows INTEGER NOT NULL,
  first_sequence INTEGER NOT NULL, last_sequence INTEGER NOT NULL,
  min_step INTEGER NOT NULL, max_step INTEGER NOT NULL,
  min_time_ns INTEGER NOT NULL, max_time_ns INTEGER NOT NULL, -- Unix
  stats BLOB NOT NULL, data BLOB NOT NULL);
CREATE TABLE event(sequence INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, step INTEGER, kind TEXT NOT NULL,
  json TEXT NOT NULL);
CREATE TABLE artifact(sequence INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, name TEXT NOT NULL,
  type TEXT NOT NULL, description TEXT NOT NULL, step INTEGER, ttl_seconds INTEGER, aliases TEXT NOT NULL, tags TEXT NOT NULL,
  metadata TEXT NOT NULL);
CREATE TABLE artifact_file(artifact INTEGER, position INTEGER, name TEXT NOT NULL,
  path TEXT NOT NULL, -- from the experiment's folder
  size INTEGER NOT NULL, md5 TEXT NOT NULL, sha256 TEXT NOT NULL, reference TEXT NOT NULL, json TEXT NOT NULL,
  PRIMARY KEY(artifact, position)) WITHOUT ROWID;
CREATE TABLE file(sequence INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, name TEXT NOT NULL,
  path TEXT NOT NULL, -- from the experiment's folder
  size INTEGER NOT NULL, md5 TEXT NOT NULL, sha256 TEXT NOT NULL, kind TEXT NOT NULL);
)sql";

class MetaWriter {
 public:
  explicit MetaWriter(Connection& connection) : statement_(connection.prepare(kSetMeta)) {}
  void text(std::string_view name, std::string_view value) { statement_.run(name, value); }
  void integer(std::string_view name, std::int64_t value) { statement_.run(name, value); }
  void integer(std::string_view name, const std::optional<std::int64_t>& value) {
    if (value) integer(name, *value);
  }

 private:
  Statement statement_;
};

void write_identity(MetaWriter& meta, const Identity& identity) {
  meta.text("project", identity.project);
  meta.text("experiment", identity.experiment);
  meta.text("entity", identity.entity);
  meta.text("group", identity.group);
  meta.text("job_type", identity.job_type);
  meta.text("name", identity.name);
  meta.text("notes", identity.notes);
  meta.text("tags", json_of_texts(identity.tags));
  meta.text("wandb_run_id", identity.wandb_run_id);
  if (identity.log_strategy) meta.text("log_strategy", to_string(*identity.log_strategy));
  meta.integer("rank", identity.rank);
  meta.integer("local_rank", identity.local_rank);
  meta.integer("world_size", identity.world_size);
  meta.integer("local_world_size", identity.local_world_size);
  meta.integer("node", identity.node);
  meta.text("launch_token", identity.launch_token);
  meta.integer("resume_step", identity.resume_step);
  meta.text("host", identity.host);
  meta.integer("pid", identity.pid);
  meta.integer("pid_start_ticks", static_cast<std::int64_t>(identity.pid_start_ticks));
  meta.text("program", identity.program);
  meta.text("arguments", json_of_texts(identity.arguments));
  meta.text("git_commit", identity.git_commit);
  meta.text("git_remote", identity.git_remote);
  meta.text("libraries", identity.libraries);
  meta.text("host_facts", identity.host_facts);
}

// The rows of `meta`, taken by name.
class MetaRows {
 public:
  explicit MetaRows(Connection& connection) {
    Statement statement = connection.prepare("SELECT name, value FROM meta");
    while (statement.step()) {
      const std::uint32_t digest = digest_of_columns(statement, 2);
      const std::string name(statement.text(0));
      if (name != kMetaDigest) digest_ += digest;
      has_digests_ = has_digests_ || name.starts_with(kDigestPrefix);
      if (statement.is_null(1)) continue;
      integers_[name] = statement.integer(1);
      texts_[name] = statement.text(1);
    }
  }
  [[nodiscard]] std::string text(std::string_view name) const {
    const auto found = texts_.find(name);
    return found == texts_.end() ? std::string() : found->second;
  }
  [[nodiscard]] std::string object(std::string_view name) const {
    std::string json = text(name);
    return json.empty() ? "{}" : json;
  }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const {
    const auto found = integers_.find(name);
    if (found == integers_.end()) return std::nullopt;
    return found->second;
  }
  [[nodiscard]] std::optional<int> small(std::string_view name) const {
    const auto value = integer(name);
    if (!value || *value < std::numeric_limits<int>::min() || *value > std::numeric_limits<int>::max()) {
      return std::nullopt;
    }
    return static_cast<int>(*value);
  }
  [[nodiscard]] std::uint64_t count(std::string_view name) const {
    return static_cast<std::uint64_t>(integer(name).value_or(0));
  }
  [[nodiscard]] std::int64_t required_integer(std::string_view name) const {
    const auto value = integer(name);
    if (!value) missing(name);
    return *value;
  }
  [[nodiscard]] int required_rank(std::string_view name) const {
    const auto value = small(name);
    if (!value || *value < 0) missing(name);
    return *value;
  }
  [[nodiscard]] std::string required_text(std::string_view name) const {
    std::string value = text(name);
    if (value.empty()) missing(name);
    return value;
  }
  [[nodiscard]] std::optional<Digests> digests() const {
    if (!has_digests_) return std::nullopt;
    Digests digests;
    for (std::size_t i = 0; i < kTableLayouts.size(); ++i) {
      digests[static_cast<Table>(i)] = static_cast<std::uint32_t>(count(kTableLayouts.at(i).digest));
    }
    return digests;
  }
  [[nodiscard]] bool is_as_written() const {
    return !has_digests_ || integer(kMetaDigest) == std::int64_t{digest_};
  }

 private:
  [[noreturn]] static void missing(std::string_view name) {
    throw Error(ErrorCode::kDamaged, "its " + std::string(name) + " is missing");
  }
  bool has_digests_ = false;
  std::uint32_t digest_ = 0;
  std::map<std::string, std::int64_t, std::less<>> integers_;
  std::map<std::string, std::string, std::less<>> texts_;
};

Identity read_identity(const MetaRows& meta) {
  Identity identity;
  identity.project = meta.required_text("project");
  identity.experiment = meta.required_text("experiment");
  identity.entity = meta.text("entity");
  identity.group = meta.text("group");
  identity.job_type = meta.text("job_type");
  identity.name = meta.text("name");
  identity.notes = meta.text("notes");
  identity.tags = texts_of_json(meta.text("tags"));
  identity.wandb_run_id = meta.text("wandb_run_id");
  for (const Strategy strategy : {Strategy::kMain, Strategy::kNode, Strategy::kAll}) {
    if (meta.text("log_strategy") == to_string(strategy)) identity.log_strategy = strategy;
  }
  identity.rank = meta.required_rank("rank");
  identity.local_rank = meta.required_rank("local_rank");
  identity.world_size = meta.required_rank("world_size");
  identity.local_world_size = meta.required_rank("local_world_size");
  identity.node = meta.required_rank("node");
  identity.launch_token = meta.text("launch_token");
  identity.resume_step = meta.integer("resume_step");
  identity.host = meta.text("host");
  identity.pid = meta.integer("pid").value_or(0);
  identity.pid_start_ticks = meta.count("pid_start_ticks");
  identity.program = meta.text("program");
  identity.arguments = texts_of_json(meta.text("arguments"));
  identity.git_commit = meta.text("git_commit");
  identity.git_remote = meta.text("git_remote");
  identity.libraries = meta.object("libraries");
  identity.host_facts = meta.object("host_facts");
  return identity;
}

}  // namespace

void create_tables(Connection& connection, const Identity& identity, std::int64_t start_time_ns) {
  connection.execute(("PRAGMA application_id = " + std::to_string(kApplicationId)).c_str());
  connection.execute(("PRAGMA user_version = " + std::to_string(kFormatVersion)).c_str());
  connection.execute(kTables);
  MetaWriter meta(connection);
  meta.integer("format_version", kFormatVersion);
  write_identity(meta, identity);
  meta.integer("start_time_ns", start_time_ns);
  meta.integer(kMetaHeartbeat, start_time_ns);
  for (const std::string_view name :
       {kMetaWatermark, kMetaRows, kMetaChunks, kMetaChunkRows, kMetaDroppedRows, kMetaActive}) {
    meta.integer(name, 0);
  }
  record_meta_digest(connection);
}

void record_meta_digest(Connection& connection) {
  const std::int64_t digest = digest_of_meta(connection);
  Statement set_meta = connection.prepare(kSetMeta);
  set_meta.run(kMetaDigest, digest);
}

void record_durability(Connection& connection, const Durability& durability) {
  Statement set_meta = connection.prepare(kSetMeta);
  set_meta.run(kMetaDurability, to_json(durability));
  record_meta_digest(connection);
}

Meta read_meta(Connection& connection) {
  const MetaRows rows(connection);
  Meta meta;
  FileInfo& info = meta.info;
  info.format_version = static_cast<int>(kFormatVersion);
  info.identity = read_identity(rows);
  info.start_time_ns = rows.required_integer("start_time_ns");
  info.end_time_ns = rows.integer(kMetaEndTime);
  info.end_state = parse_end_state(rows.text(kMetaEndState));
  info.exit_code = rows.small(kMetaExitCode);
  info.heartbeat_ns = rows.integer(kMetaHeartbeat).value_or(info.start_time_ns);
  info.active_ns = rows.integer(kMetaActive).value_or(0);
  info.rows = rows.count(kMetaRows);
  info.dropped_rows = rows.count(kMetaDroppedRows);
  info.last_step = rows.integer(kMetaLastStep);
  info.rewind_step = rows.integer(kMetaRewindStep);
  info.durability = rows.object(kMetaDurability);
  meta.watermark = static_cast<std::uint64_t>(rows.required_integer(kMetaWatermark));
  meta.chunks = {rows.count(kMetaChunks), info.rows, std::nullopt};
  if (rows.integer(kMetaChunkRows)) meta.chunks.rows = rows.count(kMetaChunkRows);
  meta.digests = rows.digests();
  for (std::int64_t* time : {&info.start_time_ns, &info.heartbeat_ns, &info.active_ns}) {
    if (*time >= 0) continue;
    meta.damage.push_back({"table meta", "a time in it is negative"});
    *time = 0;
  }
  if (!rows.is_as_written()) meta.damage.push_back({"table meta", kOtherRows});
  return meta;
}

std::vector<std::string> list_contents(Connection& connection) {
  // Whether a file has a last step, a rewind or a digest follows from its rows, which may be damaged.
  constexpr std::string_view kContents = R"sql(
    SELECT 'table ' || name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'
    UNION ALL SELECT 'column ' || s.name || '.' || c.name FROM sqlite_master AS s, pragma_table_info(s.name) AS c
      WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite!_%' ESCAPE '!'
    UNION ALL SELECT name || ' in meta' FROM meta
      WHERE name NOT IN ('last_step', 'rewind_step') AND name NOT LIKE 'digest!_%' ESCAPE '!'
    UNION ALL SELECT DISTINCT 'stream ' || stream FROM chunk WHERE stream > ?1)sql";
  std::vector<std::string> names;
  try {
    Statement row = connection.prepare(kContents);
    row.bind(1, static_cast<std::int64_t>(kStreams.size()) - 1);
    while (row.step()) names.emplace_back(row.text(0));
  } catch (const SqliteError& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
  }
  return names;
}

std::string json_of_texts(const std::vector<std::string>& texts) {
  return nlohmann::json(texts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> texts_of_json(std::string_view json) {
  const nlohmann::json array = nlohmann::json::parse(json, nullptr, false);
  std::vector<std::string> texts;
  if (!array.is_array()) return texts;
  for (const auto& item : array) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

}  // namespace ranklog
