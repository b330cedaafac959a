#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "ranklog/cli/command.hpp"
#include "ranklog/cli/inputs.hpp"
#include "ranklog/cli/output.hpp"
#include "ranklog/cli/plot_data.hpp"
#include "ranklog/cli/table.hpp"
#include "ranklog/schema/suggest.hpp"
#include "ranklog/sql/database.hpp"

namespace ranklog::cli {
namespace {

struct QueryOptions {
  Inputs inputs;
  std::string sql;
  bool schema = false, json = false, ndjson = false, csv = false;
  bool all_attempts = false;
  ColorMode color = ColorMode::kAuto;
};

OutputFormat format_of(const QueryOptions& options) {
  if (options.json) return OutputFormat::kJson;
  if (options.ndjson) return OutputFormat::kNdjson;
  return options.csv ? OutputFormat::kCsv : OutputFormat::kTable;
}

void print_schema(const Terminal& terminal) {
  for (const sql::TableHelp& help : sql::describe_tables()) {
    std::cout << colored(terminal.color, 1, help.name) << ": " << help.help << '\n';
    Table table({{"  column"}, {"type"}, {"meaning"}});
    for (const sql::ColumnHelp& column : help.columns) {
      table.add({"  " + column.name, column.type.empty() ? "any" : column.type,
                 column.help + (column.hidden ? " (not part of *)" : "")});
    }
    if (help.name == "history") table.add({"  \"<key>\"", "any", "one column a key, such as \"train/loss\""});
    table.print(std::cout, false);
    std::cout << '\n';
  }
}

void print_schema_json() {
  auto json = nlohmann::ordered_json::array();
  for (const sql::TableHelp& help : sql::describe_tables()) {
    auto columns = nlohmann::ordered_json::array();
    for (const sql::ColumnHelp& column : help.columns) {
      columns.push_back(
          {{"name", column.name}, {"type", column.type}, {"hidden", column.hidden}, {"help", column.help}});
    }
    json.push_back({{"name", help.name}, {"help", help.help}, {"columns", std::move(columns)}});
  }
  std::cout << json.dump(2) << '\n';
}

// What stands behind "no such table: " or the like in SQLite's message; empty if that is not what it says.
std::string after(const std::string& message, const std::string& words) {
  const std::size_t at = message.find(words);
  if (at == std::string::npos) return {};
  const std::string rest = message.substr(at + words.size());
  // Newer versions of SQLite put a name that was quoted in quotes, and add a hint of their own.
  return rest.front() == '"' ? rest.substr(1, rest.find('"', 1) - 1) : rest;
}

std::string table_hint(const std::string& typed) {
  std::vector<std::string> names;
  for (const sql::TableHelp& help : sql::describe_tables()) names.push_back(help.name);
  const auto meant = nearest(typed, names);
  return meant.empty() ? "the tables are " + join_alternatives(names)
                       : "did you mean " + join_alternatives(meant) + "?";
}

std::string column_hint(const std::string& typed, sql::Catalog& catalog) {
  std::set<std::string> names;
  for (const sql::TableHelp& help : sql::describe_tables()) {
    for (const sql::ColumnHelp& column : help.columns) names.insert(column.name);
  }
  const auto keys = known_keys(catalog);
  if (std::find(keys.begin(), keys.end(), typed) != keys.end()) {
    return "'" + typed + "' is a key: write WHERE key = '" + typed + "', or read it FROM history";
  }
  const std::string last_name = typed.substr(typed.rfind('.') + 1);
  const auto meant = nearest(last_name, std::vector<std::string>(names.begin(), names.end()));
  return (meant.empty() ? "" : "did you mean " + join_alternatives(meant) + "? ") +
         std::string("ranklog query --schema lists the columns");
}

// Adds what was probably meant to SQLite's own words.
Error with_hint(const Error& error, sql::Catalog& catalog) {
  const std::string message = error.what();
  if (const auto name = after(message, "no such table: "); !name.empty()) {
    return {error.code(), message, table_hint(name)};
  }
  if (const auto name = after(message, "no such column: "); !name.empty()) {
    return {error.code(), message, column_hint(name, catalog)};
  }
  return error;
}

std::string read_sql(const QueryOptions& options) {
  if (options.sql != "-") return options.sql;
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

// A statement that fails after its first rows leaves them printed, as a whole document.
int answer(const std::string& sql, sql::Catalog& catalog, sql::Database& database, RowPrinter& printer) {
  bool any = false;
  try {
    database.query(
        sql, [&](const auto& names) { printer.columns(names); },
        [&](const auto& values) {
          any = true;
          printer.row(values);
        });
  } catch (const Error& error) {
    if (!any) throw with_hint(error, catalog);
    printer.end();
    print_error(error.what());
    return exit_status(error.code());
  }
  printer.end();
  return kExitOk;
}

int query(const QueryOptions& options) {
  const Terminal terminal = detect_terminal(options.color);
  if (options.schema || options.sql == ".schema" || options.sql == ".tables") {
    options.json ? print_schema_json() : print_schema(terminal);
    return kExitOk;
  }
  if (options.sql.empty()) {
    throw Error(ErrorCode::kUsage, "the SQL is missing",
                "as in: ranklog query \"SELECT rank, count(*) FROM points GROUP BY rank\"");
  }
  const std::string sql = read_sql(options);
  Loaded loaded = load(options.inputs);
  const auto catalog = std::make_shared<sql::Catalog>(std::move(loaded.experiments));
  sql::Database database(catalog, {options.all_attempts});
  const auto printer = make_printer(format_of(options), std::cout, terminal);
  int status = kExitOk;
  const int of_problems =
      report_problems(loaded.problems, *catalog, [&] { status = answer(sql, *catalog, database, *printer); });
  return status == kExitOk ? of_problems : status;
}

void declare_formats(CLI::App& app, QueryOptions& options) {
  CLI::Option* json = app.add_flag("--json", options.json, "print a JSON array of objects");
  CLI::Option* ndjson = app.add_flag("--ndjson", options.ndjson, "print one JSON object a line");
  CLI::Option* csv = app.add_flag("--csv", options.csv, "print CSV with a header");
  json->excludes(ndjson)->excludes(csv);
  ndjson->excludes(csv);
}

}  // namespace

Command query_command() {
  return {
      "query", "Ask the logs of all ranks anything, in SQL", [](CLI::App& app) {
        auto options = std::make_shared<QueryOptions>();
        app.add_option("SQL", options->sql, "one SELECT; - reads it from standard input");
        declare_formats(app, *options);
        app.add_flag("--schema", options->schema, "list the tables and their columns, with what they mean");
        app.add_flag("--all-attempts", options->all_attempts,
                     "show also what later attempts replaced (as WHERE all_attempts = 1)");
        options->inputs.add_experiments(app);
        add_color(app, options->color);
        options->inputs.add_paths(app);
        app.footer(
            "Tables: points (a row a value), history (a row a step, a column a key), series (counts and\n"
            "ranges, from statistics), runs, config, events, artifacts. SQL is SQLite's; nothing can be\n"
            "written. Conditions on project, experiment, attempt, rank, local_rank, node, key, step and "
            "time\n"
            "decide which files and chunks are read at all. Texts take single quotes; names such as\n"
            "\"train/loss\" take double ones.\n"
            "\n"
            "NaN: SQL has no such number, so its value is NULL; kind = 'nan' tells it from a null that was\n"
            "logged, and a value that was not logged has no row. Infinities are numbers; in JSON, which has "
            "no\n"
            "such numbers, they are the texts \"Infinity\" and \"-Infinity\".\n"
            "\n"
            "Examples:\n"
            "  ranklog query \"SELECT rank, avg(value) FROM points WHERE key = 'loss' AND step >= 100\n"
            "                 GROUP BY rank\"\n"
            "  ranklog query \"SELECT step, max(value) - min(value) AS spread FROM points\n"
            "                 WHERE key = 'loss' GROUP BY step ORDER BY spread DESC LIMIT 5\"\n"
            "  ranklog query \"SELECT rank, min(step) FROM points WHERE key = 'loss' AND kind = 'nan'\n"
            "                 GROUP BY rank\"\n"
            "  ranklog query --csv 'SELECT step, \"loss\", \"lr\" FROM history WHERE rank = 0' > "
            "rank0.csv\n");
        return [options] { return query(*options); };
      }};
}

}  // namespace ranklog::cli
