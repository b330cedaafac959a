#pragma once
// A table that has some records a rank file, read when the scan reaches the file.

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "columns.hpp"
#include "table.hpp"

namespace ranklog::sql {

// The records of a file. One that the scan does not show leaves its place empty, so that the others have the
// same row id in every scan.
template <class Record>
using Records = std::vector<std::optional<Record>>;

template <class Record, class Hidden>
Records<Record> hide_if(std::vector<Record> all, Hidden hidden) {
  Records<Record> records(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!hidden(all[i])) records[i] = std::move(all[i]);
  }
  return records;
}

template <class Record>
struct RecordReader {
  // `all_attempts` as asked for.
  std::function<Records<Record>(Catalog&, const SourceFile&, bool all_attempts)> read;
  // A column after the place columns.
  std::function<void(sqlite3_context*, int column, const SourceFile&, const Record&)> column;
  // Index of the all_attempts column; -1: the table has none.
  int all_attempts = -1;
};

template <class Record>
class RecordRows : public Rows {
 public:
  RecordRows(Catalog& catalog, const RecordReader<Record>& reader, Filter filter, bool all_attempts)
      : catalog_(catalog), reader_(reader), filter_(std::move(filter)), all_attempts_(all_attempts) {}

  bool next() override {
    if (filter_.impossible()) return false;
    while (true) {
      while (next_record_ < records_.size()) {
        if (records_[next_record_++]) return true;
      }
      if (next_file_ >= catalog_.files().size()) return false;
      source_ = &catalog_.files()[next_file_++];
      next_record_ = 0;
      records_.clear();
      if (in_place(filter_, *source_)) records_ = reader_.read(catalog_, *source_, all_attempts_);
    }
  }

  std::int64_t row_id() const override { return row_id_of(*source_, next_record_); }

  void column(sqlite3_context* out, int index) override {
    if (index < kPlaceColumns) return result_place(out, index, *source_);
    if (index == reader_.all_attempts) return sqlite3_result_int(out, all_attempts_ ? 1 : 0);
    reader_.column(out, index, *source_, *records_[next_record_ - 1]);
  }

 private:
  Catalog& catalog_;
  const RecordReader<Record>& reader_;
  Filter filter_;
  bool all_attempts_;
  std::size_t next_file_ = 0;
  const SourceFile* source_ = nullptr;
  Records<Record> records_;
  std::size_t next_record_ = 0;
};

template <class Record>
class RecordTable : public Table {
 public:
  RecordTable(std::vector<ColumnSpec> columns, RecordReader<Record> reader, Catalog& catalog,
              const ModuleOptions& options)
      : Table(std::move(columns)), reader_(std::move(reader)), catalog_(catalog), options_(options) {}

  double expected_rows() const override { return 20.0 * static_cast<double>(1 + catalog_.files().size()); }

  std::unique_ptr<Rows> scan(const Filter& filter) const override {
    const bool all =
        reader_.all_attempts >= 0 && filter.parameter(reader_.all_attempts, options_.all_attempts);
    return std::make_unique<RecordRows<Record>>(catalog_, reader_, filter, all);
  }

 private:
  RecordReader<Record> reader_;
  Catalog& catalog_;
  ModuleOptions options_;
};

}  // namespace ranklog::sql
