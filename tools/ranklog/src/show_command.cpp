#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "ranklog/cli/command.hpp"
#include "ranklog/cli/format.hpp"
#include "ranklog/cli/inputs.hpp"
#include "ranklog/cli/text.hpp"
#include "ranklog/schema/durability.hpp"
#include "ranklog/schema/time.hpp"

namespace ranklog::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct ShowOptions {
  std::vector<std::string> names;  // experiments, folders, files
  bool json = false;
};

// A path if there is one; else an experiment's id in the default folder.
Loaded load_named(const std::vector<std::string>& names) {
  Inputs inputs;
  for (const std::string& name : names) {
    std::error_code ignored;
    const bool is_path = name.find('/') != std::string::npos || fs::exists(name, ignored);
    if (is_path) {
      inputs.paths.emplace_back(name);
    } else {
      inputs.experiments.push_back(name);
    }
  }
  // Ids are looked for in the default folder, whatever paths are named beside them.
  if (inputs.paths.empty() || inputs.experiments.empty()) return load(inputs);
  Loaded all = load({inputs.paths, {}});
  Loaded more = load({{}, inputs.experiments});
  std::move(more.experiments.begin(), more.experiments.end(), std::back_inserter(all.experiments));
  std::move(more.problems.begin(), more.problems.end(), std::back_inserter(all.problems));
  return all;
}

std::string mode_text(const std::string& json) {
  const auto durability = parse_durability(json);
  if (!durability) return "not told";
  std::string text = "journal_mode=" + std::string(to_string(durability->journal));
  if (!durability->locks) text += " without locks";
  if (!durability->tail.empty()) text += ", tail=" + durability->tail;
  if (!durability->file_system.empty()) text += ", on " + durability->file_system;
  return durability->reason.empty() ? text : text + ": " + durability->reason;
}

// Of all files of an experiment: equal texts once, with the number of files that have them.
using Counted = std::map<std::string, int>;

template <class TextOf>
Counted count(const Experiment& experiment, TextOf text_of) {
  Counted counted;
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) ++counted[text_of(segment)];
  }
  return counted;
}

std::uint64_t dropped_rows(const Experiment& experiment) {
  std::uint64_t rows = 0;
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) rows += segment.info.dropped_rows;
  }
  return rows;
}

bool all_ended(const Experiment& experiment) {
  return std::ranges::all_of(experiment.attempts, [](const Attempt& attempt) {
    return std::ranges::all_of(
        attempt.segments, [](const RankSegment& segment) { return segment.info.end_time_ns.has_value(); });
  });
}

const RankSegment& newest(const Experiment& experiment) {
  return experiment.attempts.back().segments.front();
}

void line(std::string_view name, const std::string& value) {
  if (!value.empty()) std::cout << "  " << pad_to(name, 12, Align::kLeft) << ' ' << printable(value) << '\n';
}

void lines(std::string_view name, const Counted& counted) {
  const std::string_view title = name;
  for (const auto& [text, files] : counted) {
    const bool alone = counted.size() == 1;
    line(title, alone ? text : text + " (" + plural(static_cast<std::uint64_t>(files), "file") + ")");
  }
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

void print_identity(const Experiment& experiment) {
  const Identity& identity = experiment.identity();
  line("entity", identity.entity);
  line("group", identity.group);
  line("job type", identity.job_type);
  line("name", identity.name);
  line("notes", identity.notes);
  line("tags", joined(identity.tags, ", "));
  line("W&B run id", identity.wandb_run_id);
  if (identity.log_strategy) line("strategy", std::string(to_string(*identity.log_strategy)));
  line("program",
       identity.program + (identity.arguments.empty() ? "" : " ") + joined(identity.arguments, " "));
  line("git", identity.git_commit + (identity.git_remote.empty() ? "" : " of " + identity.git_remote));
}

void print_files(const Experiment& experiment) {
  std::size_t files = 0;
  std::uint64_t rows = 0;
  for (const Attempt& attempt : experiment.attempts) {
    files += attempt.segments.size();
    for (const RankSegment& segment : attempt.segments) rows += segment.info.rows;
  }
  line("attempts", std::to_string(experiment.attempts.size()));
  line("ranks", std::to_string(experiment.ranks().size()) + " of " + std::to_string(experiment.world_size()) +
                    " in " + plural(files, "file"));
  if (files == 1) {
    const RankSegment& only = newest(experiment);
    const Identity& identity = only.info.identity;
    line("rank", std::to_string(identity.rank) + " (local rank " + std::to_string(identity.local_rank) +
                     ", node " + std::to_string(identity.node) + ")");
    line("process", identity.host + ", pid " + std::to_string(identity.pid));
    line("file", only.path.string());
  } else {
    line("folder", experiment.folder.string());
  }
  line("started", format_local_time(experiment.attempts.front().start_time_ns));
  line("rows", format_count(rows));
}

void print_config(const Experiment& experiment) {
  const auto config = RankFile::open(newest(experiment).path).config();
  if (config.empty()) return;
  std::cout << "  config\n";
  for (const ConfigEntry& entry : config) {
    std::cout << "    " << printable(entry.key) << " = " << printable(entry.json) << '\n';
  }
}

void print(const Experiment& experiment, std::int64_t now) {
  std::cout << printable(experiment.project + "/" + experiment.id) << '\n';
  lines("state", count(experiment, [&](const RankSegment& segment) {
          return std::string(to_string(state_of(experiment, segment, now)));
        }));
  print_identity(experiment);
  print_files(experiment);
  // Drops are written with what follows them, and with the end.
  line("dropped", format_count(dropped_rows(experiment)) + " rows" +
                      (all_ended(experiment) ? "" : " so far; not every file has ended"));
  lines("written",
        count(experiment, [](const RankSegment& segment) { return mode_text(segment.info.durability); }));
  print_config(experiment);
}

Json parsed(const std::string& json) {
  Json value = Json::parse(json, nullptr, false);
  return value.is_discarded() ? Json(json) : value;
}

Json json_of(const Experiment& experiment, const Attempt& attempt, const RankSegment& segment,
             std::int64_t now) {
  const FileInfo& info = segment.info;
  const Identity& identity = info.identity;
  return {{"path", segment.path.string()},
          {"attempt", attempt.number},
          {"rank", identity.rank},
          {"local_rank", identity.local_rank},
          {"node", identity.node},
          {"host", identity.host},
          {"pid", identity.pid},
          {"state", to_string(state_of(experiment, segment, now))},
          {"started", rfc3339(info.start_time_ns)},
          {"rows", info.rows},
          {"dropped_rows", info.dropped_rows},
          {"durability", parsed(info.durability)}};
}

Json json_of(const Experiment& experiment, std::int64_t now) {
  const Identity& identity = experiment.identity();
  Json json{{"project", experiment.project},
            {"experiment", experiment.id},
            {"folder", experiment.folder.string()},
            {"entity", identity.entity},
            {"group", identity.group},
            {"job_type", identity.job_type},
            {"name", identity.name},
            {"notes", identity.notes},
            {"tags", identity.tags},
            {"wandb_run_id", identity.wandb_run_id},
            {"program", identity.program},
            {"arguments", identity.arguments},
            {"git_commit", identity.git_commit},
            {"git_remote", identity.git_remote},
            {"world_size", experiment.world_size()},
            {"dropped_rows", dropped_rows(experiment)},
            {"config", Json::object()},
            {"files", Json::array()}};
  for (const ConfigEntry& entry : RankFile::open(newest(experiment).path).config()) {
    json["config"][entry.key] = parsed(entry.json);
  }
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) {
      json["files"].push_back(json_of(experiment, attempt, segment, now));
    }
  }
  return json;
}

int show(const ShowOptions& options) {
  const Loaded loaded = load_named(options.names);
  const std::int64_t now = unix_time_ns();
  if (options.json) {
    Json json{{"experiments", Json::array()}};
    for (const Experiment& experiment : loaded.experiments) {
      json["experiments"].push_back(json_of(experiment, now));
    }
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    for (std::size_t i = 0; i < loaded.experiments.size(); ++i) {
      if (i > 0) std::cout << '\n';
      print(loaded.experiments[i], now);
    }
  }
  std::cout.flush();
  print_problems(loaded.problems);
  return exit_status_of(loaded.problems);
}

}  // namespace

Command show_command() {
  return {"show", "Show one experiment or file: identity, config, state, how it is written, drops",
          [](CLI::App& app) {
            auto options = std::make_shared<ShowOptions>();
            app.add_option("WHAT", options->names,
                           "experiment ids (looked for in RANKLOG_DIR, WANDB_DIR/ranklog, else ./ranklog), "
                           "experiment folders or rank files")
                ->required();
            app.add_flag("--json", options->json, "one JSON document, with every file");
            app.footer(
                "\"written\" is the mode that was chosen for the file system, and why: SQLite's journal\n"
                "mode, and whether the tail is mapped or appended to. RANKLOG_JOURNAL, RANKLOG_TAIL and\n"
                "RANKLOG_FILE_SYSTEM force another one when a run starts. The config is that of the\n"
                "lowest rank of the newest attempt.\n"
                "\n"
                "Examples:\n"
                "  ranklog show 4711\n"
                "  ranklog show ranklog/my-project/4711/rank-00003.db\n"
                "  ranklog show --json 4711 | jq '.experiments[].files[].durability'\n");
            return [options] { return show(*options); };
          }};
}

}  // namespace ranklog::cli
