#include "ranklog/schema/rank_file.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <sstream>

#include "key_table.hpp"
#include "rank_reader.hpp"
#include "rank_tables.hpp"
#include "ranklog/schema/chunk_codec.hpp"

namespace ranklog {
namespace {

// One of the few connections of this process that may stay open between calls.
class KeptConnection {
 public:
  KeptConnection() = default;
  ~KeptConnection() {
    if (connection_.is_open()) --open_count;
  }
  KeptConnection(const KeptConnection&) = delete;
  KeptConnection& operator=(const KeptConnection&) = delete;

  [[nodiscard]] Connection* get() noexcept { return connection_.is_open() ? &connection_ : nullptr; }
  void keep(Connection connection) {
    if (++open_count > kMost) {
      --open_count;
    } else {
      connection_ = std::move(connection);
    }
  }

 private:
  static constexpr int kMost = 64;
  static inline std::atomic<int> open_count{0};
  Connection connection_;
};

std::string place_of(const RowGroupInfo& group) {
  return group.id < 0 ? "tail" : "chunk " + std::to_string(group.id);
}

}  // namespace

// Between calls no connection is open: a reader that keeps one would hold up the writer's finish(), and
// thousands of them would use up the descriptors. Chunks, events and artifacts are never changed once they
// are written, so the view stays what it was.
struct RankFile::Impl {
  std::filesystem::path path;
  ReadMode mode;
  FileInfo info;
  TableState state;
  std::vector<KeyPath> keys;
  std::array<std::vector<RowGroupInfo>, kStreams.size()> row_groups;  // by stream
  std::vector<RowGroup> tail_groups;  // RowGroupInfo::id -1 stands for the first, -2 for the second ...
  std::vector<Operation> tail_operations;
  std::vector<ConfigEntry> config;
  std::vector<MetricDefinition> metrics;
  std::vector<SummaryOverride> summary;
  std::uint64_t passed_over = 0;  // records of the tail that this version does not know
  mutable std::vector<Damage> damage;
  mutable KeptConnection kept;

  void read_index(Snapshot& snapshot);
  void add_group(RowGroupInfo group, KeyTable& table);
  void add_tail_groups(std::vector<RowGroup> groups, KeyTable& table);
  void note_damage(Damage found) const;
  void check_pages(Connection& connection) const;
  template <class Body>
  auto with_connection(Body body) const;
  [[nodiscard]] RowGroup load(const RowGroupInfo& group, std::optional<std::span<const KeyId>> keys) const;

  // The table's rows, then what the tail adds to them.
  template <class T>
  using Read = void (*)(Connection&, const TableState&, std::vector<T>&, std::vector<Damage>&);
  template <class T>
  [[nodiscard]] std::vector<T> table_and_tail(Read<T> read) const;
};

void RankFile::Impl::note_damage(Damage found) const {
  const auto same = [&](const Damage& known) {
    return known.place == found.place && known.reason == found.reason;
  };
  if (std::ranges::none_of(damage, same)) damage.push_back(std::move(found));
}

void RankFile::Impl::check_pages(Connection& connection) const {
  Statement statement = connection.prepare("PRAGMA integrity_check");
  while (statement.step()) {
    // SQLite may say several things in one row.
    std::istringstream lines{std::string(statement.text(0))};
    for (std::string line; std::getline(lines, line);) {
      if (line != "ok" && line != "*** in database main ***") note_damage({"database", line});
    }
  }
}

template <class Body>
auto RankFile::Impl::with_connection(Body body) const {
  if (Connection* connection = kept.get()) return body(*connection);
  Connection connection = connect(path, mode);
  auto result = body(connection);
  if (info.end_time_ns) kept.keep(std::move(connection));
  return result;
}

// Every key id of every group stands for a name afterwards. A group that names impossible ids is left out.
void RankFile::Impl::add_group(RowGroupInfo group, KeyTable& table) {
  const bool is_known =
      std::ranges::all_of(group.series, [&](const SeriesStats& series) { return table.require(series.key); });
  if (is_known) {
    row_groups[index_of(group.stream)].push_back(std::move(group));
  } else {
    note_damage({place_of(group), "it names keys that cannot exist"});
  }
}

void RankFile::Impl::add_tail_groups(std::vector<RowGroup> groups, KeyTable& table) {
  tail_groups = std::move(groups);
  std::int64_t id = 0;
  for (const RowGroup& group : tail_groups) {
    RowGroupInfo described = describe(group);
    described.id = --id;
    add_group(std::move(described), table);
  }
}

void RankFile::Impl::read_index(Snapshot& snapshot) {
  Connection& connection = snapshot.connection;
  damage = std::move(snapshot.damage);
  std::vector<Damage> found;
  KeyTable table(found);
  read_keys(connection, state, table, found);
  std::vector<RowGroupInfo> chunks = read_chunk_index(connection, snapshot.meta.chunks, found);
  read_config(connection, state, config, found);
  read_metrics(connection, state, metrics, found);
  read_summary(connection, state, summary, found);
  for (TailKey& key : snapshot.tail.keys) table.define(key.key, std::move(key.path));
  for (RowGroupInfo& chunk : chunks) add_group(std::move(chunk), table);
  add_tail_groups(std::move(snapshot.tail.groups), table);
  keys = table.take();
  for (Damage& item : found) note_damage(std::move(item));
}

RowGroup RankFile::Impl::load(const RowGroupInfo& group,
                              std::optional<std::span<const KeyId>> keys_wanted) const {
  if (group.id < 0) {
    RowGroup rows = tail_groups[static_cast<std::size_t>(-group.id - 1)];
    const auto unwanted = [&](const Column& column) {
      return keys_wanted && !std::ranges::binary_search(*keys_wanted, column.key());
    };
    std::erase_if(rows.columns, unwanted);
    return rows;
  }
  const std::string place = place_of(group);
  try {
    RowGroup rows =
        with_connection([&](Connection& connection) { return read_chunk(connection, group, keys_wanted); });
    const auto is_known = [&](const Column& column) { return column.key() < keys.size(); };
    if (!std::ranges::all_of(rows.columns, is_known)) {
      throw Error(ErrorCode::kDamaged, "it names keys that do not exist");
    }
    return rows;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
    note_damage({place, error.what()});
    throw Error(ErrorCode::kDamaged, "'" + path.string() + "', " + place + ": " + error.what());
  }
}

template <class T>
std::vector<T> RankFile::Impl::table_and_tail(Read<T> read) const {
  std::vector<T> all;
  std::vector<Damage> found;
  try {
    with_connection([&](Connection& connection) { return read(connection, state, all, found), 0; });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
    found.push_back({"database", error.what()});
  }
  for (Damage& item : found) note_damage(std::move(item));
  for (const Operation& operation : tail_operations) {
    const T* body = std::get_if<T>(&operation.body);
    if (body == nullptr) continue;
    T& added = all.emplace_back(*body);
    added.sequence = operation.sequence;
    added.time_ns = operation.time_ns;
  }
  return all;
}

RankFile::RankFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RankFile::RankFile(RankFile&&) noexcept = default;
RankFile& RankFile::operator=(RankFile&&) noexcept = default;
RankFile::~RankFile() = default;

RankFile RankFile::open(const std::filesystem::path& path) {
  Snapshot snapshot = take_snapshot(path);
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->mode = snapshot.mode;
  impl->info = snapshot.meta.info;
  impl->state = {snapshot.meta.watermark, snapshot.meta.digests};
  impl->tail_operations = std::move(snapshot.tail.operations);
  impl->passed_over = snapshot.tail.passed_over;
  impl->read_index(snapshot);
  for (const Operation& operation : impl->tail_operations) {
    if (const auto* entry = std::get_if<ConfigEntry>(&operation.body)) apply(impl->config, *entry);
    if (const auto* metric = std::get_if<MetricDefinition>(&operation.body)) apply(impl->metrics, *metric);
    if (const auto* entry = std::get_if<SummaryOverride>(&operation.body)) apply(impl->summary, *entry);
  }
  return RankFile(std::move(impl));
}

const std::filesystem::path& RankFile::path() const noexcept {
  return impl_->path;
}
const FileInfo& RankFile::info() const noexcept {
  return impl_->info;
}
const std::vector<KeyPath>& RankFile::keys() const noexcept {
  return impl_->keys;
}
std::span<const RowGroupInfo> RankFile::row_groups(Stream stream) const noexcept {
  return impl_->row_groups[index_of(stream)];
}

RowGroup RankFile::load(std::size_t index, Stream stream) const {
  return impl_->load(impl_->row_groups[index_of(stream)].at(index), std::nullopt);
}

RowGroup RankFile::load(std::size_t index, std::span<const KeyId> keys, Stream stream) const {
  return impl_->load(impl_->row_groups[index_of(stream)].at(index), keys);
}

std::vector<ConfigEntry> RankFile::config() const {
  return impl_->config;
}
std::vector<MetricDefinition> RankFile::metric_definitions() const {
  return impl_->metrics;
}
std::vector<SummaryOverride> RankFile::summary_overrides() const {
  return impl_->summary;
}
std::vector<Event> RankFile::events() const {
  return impl_->table_and_tail<Event>(read_events);
}
std::vector<Event> RankFile::rewinds() const {
  if (!impl_->info.rewind_step) return {};
  std::vector<Event> events = impl_->table_and_tail<Event>(read_rewinds);
  std::erase_if(events, [](const Event& event) { return event.kind != kRewindEvent || !event.step; });
  return events;
}
std::vector<Artifact> RankFile::artifacts() const {
  return impl_->table_and_tail<Artifact>(read_artifacts);
}
std::vector<RunFile> RankFile::files() const {
  std::vector<RunFile> all = impl_->table_and_tail<RunFile>(read_files);
  std::map<std::string_view, std::uint64_t> latest;
  for (const RunFile& file : all) latest[file.name] = file.sequence;
  std::vector<RunFile> kept;
  for (const RunFile& file : all) {
    if (latest[file.name] == file.sequence) kept.push_back(file);
  }
  return kept;
}
std::vector<std::string> RankFile::contents() const {
  auto names = impl_->with_connection([](Connection& connection) { return list_contents(connection); });
  if (impl_->passed_over > 0)
    names.push_back(std::to_string(impl_->passed_over) + " records of the tail, of a later version");
  std::ranges::sort(names);
  return names;
}
void RankFile::check_pages() const {
  try {
    impl_->with_connection([&](Connection& connection) { return impl_->check_pages(connection), 0; });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDamaged) throw;
    impl_->note_damage({"database", error.what()});
  }
}
std::vector<Damage> RankFile::damage() const {
  return impl_->damage;
}

}  // namespace ranklog
