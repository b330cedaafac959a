#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>

#include "columns.hpp"
#include "ranklog/schema/history.hpp"
#include "table.hpp"

namespace ranklog::sql {
namespace {

enum Index : int { kStep = kPlaceColumns, kTime, kFirstKey };

// SQLite's default limit is 2,000 columns.
constexpr std::size_t kMostKeys = 1900;

std::vector<ColumnSpec> fixed_columns() {
  return with_place({
      {"step", "INTEGER", "each step once; for a key logged twice, the later value", Pushdown::kInteger},
      {"time", "REAL", "of the step's last log() call, in Unix seconds"},
  });
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(c < 0x80 ? std::tolower(c) : c); });
  return text;
}

// No SQL text can hold a NUL. In a key's display form a backslash escapes '.' and '\\' only, so that no other
// key looks like this.
std::string without_nul(std::string text) {
  for (std::size_t at = 0; (at = text.find('\0', at)) != text.npos;) text.replace(at, 1, "\\x00");
  return text;
}

// SQL names know no case, and must differ: a key that meets another's name gets a number.
std::string free_name(const std::string& key, std::set<std::string>& taken) {
  const std::string base = key.empty() ? "(empty)" : without_nul(key);
  std::string name = base;
  for (int n = 2; !taken.insert(lower(name)).second; ++n) name = base + "_" + std::to_string(n);
  return name;
}

// In the order of their first appearance; tells of those that the table has no room for.
std::vector<std::string> all_keys(Catalog& catalog) {
  std::vector<std::string> keys;
  std::set<std::string> known;
  for (const SourceFile& source : catalog.files()) {
    const auto open = catalog.open(source);
    if (open == nullptr) continue;
    for (const std::string& key : open->keys) {
      if (known.insert(key).second) keys.push_back(key);
    }
  }
  if (keys.size() > kMostKeys) {
    const std::size_t more = keys.size() - kMostKeys;
    std::string message = "history has no column for ";
    message += std::to_string(more) + (more == 1 ? " key, " : " keys, from ") + keys[kMostKeys];
    message += more == 1 ? "; points has it" : " on; points has them";
    catalog.report(ErrorCode::kNotFound, std::move(message));
    keys.resize(kMostKeys);
  }
  return keys;
}

std::vector<ColumnSpec> history_columns(const std::vector<std::string>& keys) {
  std::vector<ColumnSpec> columns = fixed_columns();
  std::set<std::string> taken;
  for (const ColumnSpec& column : columns) taken.insert(column.name);
  for (const std::string& key : keys) columns.push_back({free_name(key, taken), "", "the key " + key});
  return columns;
}

// The ranks of an experiment, as their newest files have them.
std::vector<const SourceFile*> newest_files(const Catalog& catalog) {
  std::map<std::pair<const Experiment*, int>, const SourceFile*> newest;
  for (const SourceFile& source : catalog.files()) {
    newest[{source.experiment, source.identity().rank}] = &source;
  }
  std::vector<const SourceFile*> files;
  files.reserve(newest.size());
  for (const auto& [place, source] : newest) files.push_back(source);
  std::sort(files.begin(), files.end(), [](const SourceFile* a, const SourceFile* b) {
    return std::pair(a->experiment, a->identity().rank) < std::pair(b->experiment, b->identity().rank);
  });
  return files;
}

class HistoryRows : public Rows {
 public:
  HistoryRows(Catalog& catalog, const std::vector<std::string>& keys, Filter filter)
      : catalog_(catalog), keys_(keys), filter_(std::move(filter)), files_(newest_files(catalog)) {}

  bool next() override {
    const StepRange steps = filter_.range(kStep);
    while (!filter_.impossible()) {
      while (history_ && history_->next(row_)) {
        ++ordinal_;
        if (row_.step > steps.high) break;
        if (row_.step >= steps.low) return true;
      }
      if (!next_rank()) return false;
    }
    return false;
  }

  std::int64_t row_id() const override { return row_id_of(*source_, ordinal_); }

  void column(sqlite3_context* out, int index) override {
    if (index == kStep) return sqlite3_result_int64(out, row_.step);
    if (index == kTime) return sqlite3_result_double(out, seconds(row_.time_ns));
    if (index == kAttempt) return sqlite3_result_int(out, row_.attempt);
    if (index < kPlaceColumns) return result_place(out, index, *source_);
    const auto key = static_cast<std::size_t>(index - kFirstKey);
    const auto cell = std::find_if(row_.cells.begin(), row_.cells.end(), [&](const HistoryCell& candidate) {
      return column_of_[candidate.key] == key;
    });
    if (cell == row_.cells.end()) return sqlite3_result_null(out);
    result_value(out, cell->value);
  }

 private:
  bool next_rank() {
    report_damage();
    history_.reset();
    while (next_file_ < files_.size()) {
      source_ = files_[next_file_++];
      if (!in_history(*source_)) continue;
      try {
        history_ = std::make_unique<RankHistory>(*source_->experiment, source_->identity().rank);
      } catch (const Error& error) {
        catalog_.report(error.code(), error.what());
        continue;
      }
      ordinal_ = 0;
      column_of_.clear();
      for (const KeyPath& key : history_->keys()) {
        const auto at = std::find(keys_.begin(), keys_.end(), key.display());
        column_of_.push_back(static_cast<std::size_t>(at - keys_.begin()));
      }
      return true;
    }
    return false;
  }

  // As in_place(), without the attempt: a rank's history joins them.
  [[nodiscard]] bool in_history(const SourceFile& source) const {
    const Identity& identity = source.identity();
    return filter_.accepts(kProject, std::string_view(source.experiment->project)) &&
           filter_.accepts(kExperiment, std::string_view(source.experiment->id)) &&
           filter_.accepts(kRank, std::int64_t{identity.rank}) &&
           filter_.accepts(kLocalRank, std::int64_t{identity.local_rank}) &&
           filter_.accepts(kNode, std::int64_t{identity.node});
  }

  void report_damage() {
    if (history_ == nullptr) return;
    for (const Damage& damage : history_->damage()) {
      catalog_.report(ErrorCode::kDamaged,
                      source_->segment->path.string() + ": " + damage.place + ": " + damage.reason);
    }
  }

  Catalog& catalog_;
  const std::vector<std::string>& keys_;
  Filter filter_;
  std::vector<const SourceFile*> files_;
  std::size_t next_file_ = 0;
  const SourceFile* source_ = nullptr;
  std::unique_ptr<RankHistory> history_;
  std::vector<std::size_t> column_of_;  // index into keys_ by index into history_->keys()
  HistoryRow row_;
  std::uint64_t ordinal_ = 0;  // of the row in its rank's history
};

class HistoryTable : public Table {
 public:
  HistoryTable(Catalog& catalog, std::vector<std::string> keys)
      : Table(history_columns(keys)), catalog_(catalog), keys_(std::move(keys)) {}

  double expected_rows() const override {
    double rows = 1;
    for (const SourceFile& source : catalog_.files()) rows += static_cast<double>(source.segment->info.rows);
    return rows;
  }

  std::unique_ptr<Rows> scan(const Filter& filter) const override {
    return std::make_unique<HistoryRows>(catalog_, keys_, filter);
  }

 private:
  Catalog& catalog_;
  std::vector<std::string> keys_;
};

}  // namespace

std::unique_ptr<Table> make_history(Catalog& catalog, const ModuleOptions& /*options*/) {
  return std::make_unique<HistoryTable>(catalog, all_keys(catalog));
}

}  // namespace ranklog::sql
