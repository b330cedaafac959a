#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "ranklog/cli/command.hpp"
#include "ranklog/cli/format.hpp"
#include "ranklog/cli/inputs.hpp"
#include "ranklog/cli/table.hpp"
#include "ranklog/cli/text.hpp"
#include "ranklog/schema/time.hpp"

namespace ranklog::cli {
namespace {

using Json = nlohmann::ordered_json;

struct LsOptions {
  Inputs inputs;
  bool with_files = false;
  bool json = false;
  ColorMode color = ColorMode::kAuto;
};

// What the headers of an experiment's files add up to.
struct Overview {
  std::uint64_t rows = 0, dropped_rows = 0, bytes = 0;
  std::optional<std::int64_t> last_step;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;  // or the last sign of life
  int damaged_files = 0;
  std::map<RunState, int> of_newest;  // how many files of the newest attempt are in which state
};

Overview overview_of(const Experiment& experiment, std::int64_t now) {
  Overview sum;
  bool first = true;
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) {
      const FileInfo& info = segment.info;
      sum.rows += info.rows;
      sum.dropped_rows += info.dropped_rows;
      sum.bytes += info.stored_bytes;
      if (!segment.damage.empty()) ++sum.damaged_files;
      if (info.last_step) sum.last_step = std::max(sum.last_step.value_or(*info.last_step), *info.last_step);
      sum.start_ns = first ? info.start_time_ns : std::min(sum.start_ns, info.start_time_ns);
      sum.end_ns = std::max({sum.end_ns, info.end_time_ns.value_or(info.heartbeat_ns), info.start_time_ns});
      first = false;
    }
  }
  for (const RankSegment& segment : experiment.attempts.back().segments) {
    ++sum.of_newest[state_of(experiment, segment, now)];
  }
  return sum;
}

// The state that asks most for attention, of the newest attempt.
RunState state_of_all(const Overview& overview) {
  for (const RunState state :
       {RunState::kCrashed, RunState::kFailed, RunState::kRunning, RunState::kPreempted}) {
    if (overview.of_newest.count(state) > 0) return state;
  }
  return RunState::kFinished;
}

std::string describe_state(const Overview& overview) {
  const RunState state = state_of_all(overview);
  std::string text(to_string(state));
  if (overview.of_newest.size() > 1) {
    int files = 0;
    for (const auto& [each, count] : overview.of_newest) files += count;
    text += " (" + std::to_string(overview.of_newest.at(state)) + " of " + std::to_string(files) + ")";
  }
  if (overview.damaged_files > 0) text += ", " + std::to_string(overview.damaged_files) + " damaged";
  return text;
}

constexpr int kRed = 31;

int color_of(RunState state) {
  switch (state) {
    case RunState::kRunning:
      return 36;
    case RunState::kFinished:
      return 32;
    case RunState::kPreempted:
      return 33;
    case RunState::kFailed:
    case RunState::kCrashed:
      return kRed;
  }
  return 0;
}

std::string describe_ranks(const Experiment& experiment) {
  return std::to_string(experiment.ranks().size()) + "/" + std::to_string(experiment.world_size());
}

std::string step_text(std::optional<std::int64_t> step) {
  return step ? std::to_string(*step) : "-";
}

void print_experiments(const std::vector<Experiment>& experiments, const Terminal& terminal) {
  Table table({{"PROJECT"},
               {"EXPERIMENT"},
               {"GROUP"},
               {"ATTEMPTS", Align::kRight, false},
               {"RANKS", Align::kRight, false},
               {"STATE", Align::kLeft, false},
               {"ROWS", Align::kRight, false},
               {"LAST STEP", Align::kRight, false},
               {"SIZE", Align::kRight, false},
               {"STARTED", Align::kLeft, false},
               {"DURATION", Align::kRight, false}});
  const std::int64_t now = unix_time_ns();
  for (const Experiment& experiment : experiments) {
    const Overview sum = overview_of(experiment, now);
    const bool complete = experiment.missing_ranks().empty();
    const std::string& group = experiment.identity().group;
    table.add({experiment.project,
               experiment.id,
               group.empty() ? "-" : group,
               std::to_string(experiment.attempts.size()),
               {describe_ranks(experiment), complete ? 0 : 33},
               {describe_state(sum), sum.damaged_files > 0 ? kRed : color_of(state_of_all(sum))},
               format_count(sum.rows),
               step_text(sum.last_step),
               format_size(sum.bytes),
               format_local_time(sum.start_ns),
               format_duration(time_between(sum.start_ns, sum.end_ns))});
  }
  std::optional<std::size_t> width;
  if (terminal.interactive && terminal.columns) width = static_cast<std::size_t>(*terminal.columns);
  table.print(std::cout, terminal.color, width);
}

void print_files(const Experiment& experiment, const Terminal& terminal) {
  Table table({{"  ATTEMPT", Align::kRight, false},
               {"RANK", Align::kRight, false},
               {"LOCAL", Align::kRight, false},
               {"NODE", Align::kRight, false},
               {"HOST"},
               {"STATE", Align::kLeft, false},
               {"ROWS", Align::kRight, false},
               {"LAST STEP", Align::kRight, false},
               {"SIZE", Align::kRight, false},
               {"FILE"}});
  const std::int64_t now = unix_time_ns();
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) {
      const FileInfo& info = segment.info;
      const RunState state = state_of(experiment, segment, now);
      const bool damaged = !segment.damage.empty();
      table.add(
          {std::to_string(attempt.number),
           std::to_string(info.identity.rank),
           std::to_string(info.identity.local_rank),
           std::to_string(info.identity.node),
           info.identity.host,
           {std::string(to_string(state)) + (damaged ? ", damaged" : ""), damaged ? kRed : color_of(state)},
           format_count(info.rows),
           step_text(info.last_step),
           format_size(info.stored_bytes),
           segment.path.string()});
    }
  }
  table.print(std::cout, terminal.color);
  const std::vector<int> missing = experiment.missing_ranks();
  if (missing.empty()) return;
  std::cout << "  no file of " << (missing.size() == 1 ? "rank" : "ranks");
  constexpr std::size_t kShown = 20;
  for (std::size_t i = 0; i < std::min(kShown, missing.size()); ++i) std::cout << ' ' << missing[i];
  if (missing.size() > kShown) std::cout << " and " << missing.size() - kShown << " more";
  std::cout << '\n';
}

template <class Number>
Json or_null(const std::optional<Number>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::vector<std::string> damage_texts(const RankSegment& segment) {
  std::vector<std::string> texts;
  for (const Damage& damage : segment.damage) texts.push_back(damage.place + ": " + damage.reason);
  return texts;
}

// A file of which a part can be read is listed, and named.
int report_damage(const std::vector<Experiment>& experiments) {
  int status = kExitOk;
  for (const Experiment& experiment : experiments) {
    for (const Attempt& attempt : experiment.attempts) {
      for (const RankSegment& segment : attempt.segments) {
        for (const std::string& text : damage_texts(segment)) {
          std::cerr << "ranklog: damaged: " << printable(segment.path.string() + ": " + text) << '\n';
          status = kExitDamaged;
        }
      }
    }
  }
  return status;
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
          {"exit_code", or_null(info.exit_code)},
          {"rows", info.rows},
          {"dropped_rows", info.dropped_rows},
          {"last_step", or_null(info.last_step)},
          {"size", info.stored_bytes},
          {"damage", damage_texts(segment)},
          {"started", rfc3339(info.start_time_ns)},
          {"ended", info.end_time_ns ? Json(rfc3339(*info.end_time_ns)) : Json(nullptr)},
          {"heartbeat", rfc3339(info.heartbeat_ns)}};
}

Json json_of(const Experiment& experiment, bool with_files) {
  const std::int64_t now = unix_time_ns();
  const Overview sum = overview_of(experiment, now);
  Json states = Json::object();
  for (const auto& [state, count] : sum.of_newest) states[std::string(to_string(state))] = count;
  Json json{{"project", experiment.project},
            {"experiment", experiment.id},
            {"group", experiment.identity().group},
            {"folder", experiment.folder.string()},
            {"attempts", experiment.attempts.size()},
            {"world_size", experiment.world_size()},
            {"ranks", experiment.ranks()},
            {"missing_ranks", experiment.missing_ranks()},
            {"state", to_string(state_of_all(sum))},
            {"states", std::move(states)},
            {"rows", sum.rows},
            {"dropped_rows", sum.dropped_rows},
            {"last_step", or_null(sum.last_step)},
            {"size", sum.bytes},
            {"damaged_files", sum.damaged_files},
            {"started", rfc3339(sum.start_ns)},
            {"duration_seconds", static_cast<double>(time_between(sum.start_ns, sum.end_ns)) / 1e9}};
  if (!with_files) return json;
  json["files"] = Json::array();
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) {
      json["files"].push_back(json_of(experiment, attempt, segment, now));
    }
  }
  return json;
}

void print_json(const Loaded& loaded, bool with_files) {
  Json json{{"experiments", Json::array()}, {"problems", Json::array()}};
  for (const Experiment& experiment : loaded.experiments) {
    json["experiments"].push_back(json_of(experiment, with_files));
  }
  for (const ScanProblem& problem : loaded.problems) {
    json["problems"].push_back({{"path", problem.path.string()}, {"message", problem.message}});
  }
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void print_long(const std::vector<Experiment>& experiments, const Terminal& terminal) {
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    if (i > 0) std::cout << '\n';
    print_experiments({experiments[i]}, terminal);
    print_files(experiments[i], terminal);
  }
}

int ls(const LsOptions& options) {
  const Loaded loaded = load(options.inputs);
  const Terminal terminal = detect_terminal(options.color);
  if (options.json) {
    print_json(loaded, options.with_files);
  } else if (options.with_files) {
    print_long(loaded.experiments, terminal);
  } else if (!loaded.experiments.empty()) {
    print_experiments(loaded.experiments, terminal);
  }
  std::cout.flush();
  print_problems(loaded.problems);
  return worse(exit_status_of(loaded.problems), report_damage(loaded.experiments));
}

}  // namespace

Command ls_command() {
  return {
      "ls", "List experiments: ranks found of expected, state, rows, size", [](CLI::App& app) {
        auto options = std::make_shared<LsOptions>();
        app.add_flag("-l,--long,--ranks", options->with_files, "list every rank file too");
        app.add_flag("--json", options->json, "one JSON document; times are RFC 3339 in UTC");
        options->inputs.add_experiments(app);
        add_color(app, options->color);
        options->inputs.add_paths(app);
        app.footer(
            "The state is that of the newest attempt; where its ranks differ, the one that asks most for\n"
            "attention: crashed, failed, running, preempted, finished. RANKS is found/expected. ROWS counts\n"
            "log() calls of all files. Only headers are read, so it is quick over any number of points.\n"
            "\n"
            "Examples:\n"
            "  ranklog ls\n"
            "  ranklog ls -l /scratch/me/ranklog/my-project\n"
            "  ranklog ls --json | jq '.experiments[] | select(.state == \"crashed\")'\n");
        return [options] { return ls(*options); };
      }};
}

}  // namespace ranklog::cli
