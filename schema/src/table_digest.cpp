#include "table_digest.hpp"

#include <bit>

#include "bytes.hpp"
#include "envelope.hpp"

namespace ranklog {
namespace {

// On disk, frozen.
constexpr std::uint8_t kNull = 0;
constexpr std::uint8_t kInteger = 1;
constexpr std::uint8_t kText = 2;
// Never written; here so that damage that makes one of them of something else is noticed.
constexpr std::uint8_t kReal = 3;
constexpr std::uint8_t kBlob = 4;

std::uint32_t digest_of_rows(Statement& rows, int columns) {
  std::uint32_t sum = 0;
  while (rows.step()) sum += digest_of_columns(rows, columns);
  return sum;
}

}  // namespace

void RowDigest::add(std::int64_t value) {
  append_fixed(bytes_, kInteger);
  append_fixed(bytes_, value);
}

void RowDigest::add(std::string_view text) {
  add_bytes(kText, text);
}

void RowDigest::add(const std::optional<std::int64_t>& value) {
  value ? add(*value) : append_fixed(bytes_, kNull);
}

void RowDigest::add_bytes(std::uint8_t tag, std::string_view bytes) {
  append_fixed(bytes_, tag);
  append_fixed(bytes_, static_cast<std::uint64_t>(bytes.size()));
  bytes_ += bytes;
}

void RowDigest::add(const Statement& row, int column) {
  switch (row.type(column)) {
    case SQLITE_INTEGER:
      return add(row.integer(column));
    case SQLITE_TEXT:
      return add_bytes(kText, row.text(column));
    case SQLITE_BLOB:
      return add_bytes(kBlob, row.blob(column));
    case SQLITE_FLOAT:
      append_fixed(bytes_, kReal);
      return append_fixed(bytes_, std::bit_cast<std::uint64_t>(row.real(column)));
    default:
      return append_fixed(bytes_, kNull);
  }
}

std::uint32_t RowDigest::value() const {
  return crc32_of(bytes_);
}

std::uint32_t digest_of_columns(const Statement& row, int columns) {
  RowDigest digest;
  for (int column = 0; column < columns; ++column) digest.add(row, column);
  return digest.value();
}

std::uint32_t digest_of_table(Connection& connection, Table table) {
  const TableLayout& layout = layout_of(table);
  Statement rows =
      connection.prepare("SELECT " + std::string(layout.columns) + " FROM " + std::string(layout.name));
  return digest_of_rows(rows, layout.column_count);
}

std::uint32_t digest_of_meta(Connection& connection) {
  Statement rows = connection.prepare("SELECT name, value FROM meta WHERE name <> ?1");
  rows.bind(1, kMetaDigest);
  return digest_of_rows(rows, 2);
}

}  // namespace ranklog
