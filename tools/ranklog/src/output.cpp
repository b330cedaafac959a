#include "ranklog/cli/output.hpp"

#include <array>
#include <cmath>
#include <type_traits>

#include "ranklog/cli/format.hpp"
#include "ranklog/cli/table.hpp"
#include "ranklog/schema/value.hpp"

namespace ranklog::cli {
namespace {

using sql::Blob;
using sql::SqlValue;

std::string hex(const Blob& blob) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : blob.bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xF];
  }
  return out;
}

// As people and CSV readers have it; NULL is `null`.
std::string plain(const SqlValue& value, std::string_view null) {
  return std::visit(
      [&](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::monostate>) {
          return std::string(null);
        } else if constexpr (std::is_same_v<Held, std::string>) {
          return held;
        } else if constexpr (std::is_same_v<Held, Blob>) {
          return hex(held);
        } else if constexpr (std::is_same_v<Held, double>) {
          return format_double(held);
        } else {
          return std::to_string(held);
        }
      },
      value);
}

class TablePrinter : public RowPrinter {
 public:
  TablePrinter(std::ostream& out, const Terminal& terminal) : out_(out), terminal_(terminal) {}

  void columns(const std::vector<std::string>& names) override { names_ = names; }

  void row(const std::vector<SqlValue>& values) override {
    rows_.push_back(values);
    if (rows_.size() == kHeldRows) flush();
  }

  void end() override {
    if (!rows_.empty() || blocks_ == 0) flush();
  }

 private:
  static constexpr std::size_t kHeldRows = 1000;

  void flush() {
    std::vector<TableColumn> columns;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      // Half a number would be another number: only texts are cut.
      const bool numeric = is_numeric(i);
      columns.push_back({names_[i], numeric ? Align::kRight : Align::kLeft, !numeric});
    }
    Table table(std::move(columns));
    for (const auto& values : rows_) {
      std::vector<TableCell> cells;
      for (const SqlValue& value : values) {
        const bool null = std::holds_alternative<std::monostate>(value);
        cells.emplace_back(plain(value, "NULL"), null ? kDim : 0);
      }
      table.add(std::move(cells));
    }
    if (blocks_++ > 0) out_ << '\n';
    std::optional<std::size_t> width;
    if (terminal_.interactive && terminal_.columns) width = static_cast<std::size_t>(*terminal_.columns);
    table.print(out_, terminal_.color, width);
    rows_.clear();
  }

  [[nodiscard]] bool is_numeric(std::size_t column) const {
    bool any = false;
    for (const auto& values : rows_) {
      const SqlValue& value = values[column];
      if (std::holds_alternative<std::monostate>(value)) continue;
      if (!std::holds_alternative<std::int64_t>(value) && !std::holds_alternative<double>(value))
        return false;
      any = true;
    }
    return any;
  }

  static constexpr int kDim = 90;

  std::ostream& out_;
  Terminal terminal_;
  std::vector<std::string> names_;
  std::vector<std::vector<SqlValue>> rows_;
  std::size_t blocks_ = 0;
};

class JsonPrinter : public RowPrinter {
 public:
  JsonPrinter(std::ostream& out, bool lines) : out_(out), lines_(lines) {}

  void columns(const std::vector<std::string>& names) override {
    for (const std::string& name : names) {
      names_.emplace_back();
      append_json_string(names_.back(), name);
    }
  }

  void row(const std::vector<SqlValue>& values) override {
    text_ = lines_ ? "" : rows_ == 0 ? "[\n" : ",\n";
    for (std::size_t i = 0; i < values.size(); ++i) {
      text_ += i == 0 ? '{' : ',';
      text_ += names_[i] + ':';
      append(values[i]);
    }
    text_ += lines_ ? "}\n" : "}";
    out_ << text_;
    ++rows_;
  }

  void end() override {
    if (!lines_) out_ << (rows_ == 0 ? "[]\n" : "\n]\n");
  }

 private:
  void append(const SqlValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      append_json_string(text_, *text);
    } else if (const auto* blob = std::get_if<Blob>(&value)) {
      append_json_string(text_, hex(*blob));
    } else if (const auto* real = std::get_if<double>(&value); real != nullptr && std::isinf(*real)) {
      text_ += *real > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    } else if (const auto* number = std::get_if<double>(&value)) {
      append_json(text_, *number);
    } else {
      text_ += plain(value, "null");
    }
  }

  std::ostream& out_;
  bool lines_;
  std::vector<std::string> names_;  // as JSON
  std::string text_;
  std::size_t rows_ = 0;
};

class CsvPrinter : public RowPrinter {
 public:
  explicit CsvPrinter(std::ostream& out) : out_(out) {}

  void columns(const std::vector<std::string>& names) override {
    for (std::size_t i = 0; i < names.size(); ++i) out_ << (i == 0 ? "" : ",") << field(names[i]);
    out_ << '\n';
  }

  void row(const std::vector<SqlValue>& values) override {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ << ',';
      const bool text = std::holds_alternative<std::string>(values[i]);
      out_ << (text ? field(plain(values[i], "")) : plain(values[i], ""));
    }
    out_ << '\n';
  }

  void end() override {}

 private:
  static std::string field(const std::string& text) {
    if (!text.empty() && text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + '"';
  }

  std::ostream& out_;
};

}  // namespace

std::unique_ptr<RowPrinter> make_printer(OutputFormat format, std::ostream& out, const Terminal& terminal) {
  switch (format) {
    case OutputFormat::kJson:
      return std::make_unique<JsonPrinter>(out, false);
    case OutputFormat::kNdjson:
      return std::make_unique<JsonPrinter>(out, true);
    case OutputFormat::kCsv:
      return std::make_unique<CsvPrinter>(out);
    case OutputFormat::kTable:
      break;
  }
  return std::make_unique<TablePrinter>(out, terminal);
}

}  // namespace ranklog::cli
