#include <array>
#include <cmath>
#include <cstdio>

#include "show.hpp"
#include "table.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

using Align = Table::Align;

constexpr std::size_t kDigestShown = 12;
constexpr std::size_t kFilesShown = 4;

std::string number_text(const Json& value) {
  if (value.is_number_integer()) return value.dump();
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.4g", value.get<double>());
  return out.data();
}

// One cell: nothing for null, text without quotes.
std::string cell(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value;
  return value.is_number() ? number_text(value) : value.dump();
}

// "a.b 1.5" for every scalar of the summary that is not internal.
void collect_metrics(const std::string& prefix, const Json& summary, std::vector<std::string>& out) {
  for (const auto& [name, value] : summary.items()) {
    if (prefix.empty() && name.starts_with("_")) continue;
    if (value.is_object() && !value.contains("_type")) {
      collect_metrics(prefix + name + ".", value, out);
    } else if (value.is_number() || value.is_string()) {
      out.push_back(prefix + name + " " + cell(value));
    }
  }
}

std::string joined(const std::vector<std::string>& parts, const std::string& separator) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : separator) + part;
  return out;
}

std::string count_text(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string run_extras(const Json& run) {
  std::vector<std::string> extras;
  if (!run["event_rows"].empty() && run["event_rows"] != 0)
    extras.push_back(cell(run["event_rows"]) + " system rows");
  if (run["console_lines"] != 0) extras.push_back(cell(run["console_lines"]) + " console lines");
  if (!run["files"].empty()) extras.push_back(count_text(run["files"].size(), "file"));
  return joined(extras, " · ");
}

std::string runs_text(const Json& runs, std::size_t width) {
  Table table({{"run", Align::kLeft, true},
               {"name", Align::kLeft, true},
               {"group", Align::kLeft, true},
               {"job type", Align::kLeft, true},
               {"state", Align::kLeft, false},
               {"rows", Align::kRight, false},
               {"last step", Align::kRight, false},
               {"rank", Align::kRight, false},
               {"local", Align::kRight, false},
               {"world", Align::kRight, false}});
  for (const Json& run : runs) {
    const auto config = [&run](const char* key) { return cell(run["config"].value(key, Json(nullptr))); };
    table.add_row({cell(run["id"]), cell(run["name"]), cell(run["group"]), cell(run["job_type"]),
                   cell(run["state"]), cell(run["history_rows"]), cell(run["last_step"]), config("rank"),
                   config("local_rank"), config("world_size")});
    std::vector<std::string> metrics;
    collect_metrics("", run["summary"], metrics);
    if (!metrics.empty()) table.add_note(joined(metrics, " · "));
    if (const std::string extras = run_extras(run); !extras.empty()) table.add_note(extras);
  }
  return table.render(width);
}

std::string files_note(const Json& files) {
  std::vector<std::string> parts;
  for (const Json& file : files) {
    if (parts.size() == kFilesShown) break;
    parts.push_back(cell(file["path"]) + " " + format_bytes(file["size"].get<std::uint64_t>()));
  }
  if (files.size() > kFilesShown) parts.push_back(std::to_string(files.size() - kFilesShown) + " more");
  return joined(parts, " · ");
}

std::string artifacts_text(const Json& artifacts, std::size_t width) {
  Table table({{"artifact", Align::kLeft, true},
               {"version", Align::kLeft, false},
               {"type", Align::kLeft, true},
               {"aliases", Align::kLeft, true},
               {"size", Align::kRight, false},
               {"files", Align::kRight, false},
               {"digest", Align::kLeft, false},
               {"from run", Align::kLeft, true}});
  for (const Json& artifact : artifacts) {
    table.add_row({cell(artifact["name"]), cell(artifact["version"]), cell(artifact["type"]),
                   joined(artifact["aliases"], ", "), format_bytes(artifact["size"].get<std::uint64_t>()),
                   std::to_string(artifact["files"].size()), cell(artifact["digest"]).substr(0, kDigestShown),
                   cell(artifact["run"])});
    if (!artifact["files"].empty()) table.add_note(files_note(artifact["files"]));
  }
  return table.render(width);
}

std::string anomalies_text(const Json& runs, std::size_t width) {
  std::string out;
  for (const Json& run : runs) {
    for (const Json& anomaly : run["anomalies"]) {
      out += cut_to_width("  ! " + cell(run["id"]) + ": " + cell(anomaly), width) + "\n";
    }
    if (run["more_anomalies"] != 0) {
      out += "  ! " + cell(run["id"]) + ": and " + cell(run["more_anomalies"]) + " more like these\n";
    }
  }
  return out;
}

}  // namespace

std::string state_text(const Json& state, std::size_t width, bool color) {
  std::string out;
  for (const Json& project : state["projects"]) {
    const Json& runs = project["runs"];
    const Json& artifacts = project["artifacts"];
    const std::string title = cell(project["entity"]) + "/" + cell(project["project"]);
    if (!out.empty()) out += "\n";
    out += color ? "\033[1m" + title + "\033[0m" : title;
    out += " · " + count_text(runs.size(), "run") + " · " + count_text(artifacts.size(), "artifact version") +
           "\n";
    if (!runs.empty()) out += "\n" + runs_text(runs, width);
    if (!artifacts.empty()) out += "\n" + artifacts_text(artifacts, width);
    const std::string anomalies = anomalies_text(runs, width);
    if (!anomalies.empty()) out += "\n  what a careful server would wonder about:\n" + anomalies;
  }
  return out.empty() ? "The server holds nothing yet.\n" : out;
}

}  // namespace ranklog::standin
