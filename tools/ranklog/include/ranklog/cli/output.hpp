#pragma once
// Rows of a query as a table for people, or as JSON, NDJSON or CSV for programs.

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "ranklog/cli/terminal.hpp"
#include "ranklog/sql/database.hpp"

namespace ranklog::cli {

enum class OutputFormat : unsigned char { kTable, kJson, kNdjson, kCsv };

// JSON: one array of objects, a row each. NDJSON: an object a line. In both, infinities are the texts
// "Infinity" and "-Infinity" (JSON has no such number, and one of them must not make the rest unreadable) and
// bytes are hexadecimal text. CSV: RFC 4180 with a header; an empty field is NULL, "" is the empty text.
class RowPrinter {
 public:
  virtual ~RowPrinter() = default;
  virtual void columns(const std::vector<std::string>& names) = 0;
  virtual void row(const std::vector<sql::SqlValue>& values) = 0;
  virtual void end() = 0;
};

// Only a table holds rows back, and no more than its first thousand: they settle the widths.
[[nodiscard]] std::unique_ptr<RowPrinter> make_printer(OutputFormat format, std::ostream& out,
                                                       const Terminal& terminal);

}  // namespace ranklog::cli
