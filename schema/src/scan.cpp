#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "rank_reader.hpp"
#include "ranklog/schema/experiment.hpp"
#include "ranklog/schema/naming.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

// Finds the rank files, reads their headers, and keeps one of each.
class Scanner {
 public:
  void add_input(const fs::path& input);
  [[nodiscard]] ScanResult result();

 private:
  void enter(const fs::path& folder);
  void add_file(const fs::path& path, const Names* folder_names);
  void report_orphans(const fs::path& folder, const Names& names);
  void keep(RankSegment segment);
  void report_left_out(const RankSegment& segment, const fs::path& kept);

  std::set<fs::path> entered_;  // canonical, as links may lead round in circles
  std::set<fs::path> read_;     // canonical
  // One of each file, whatever copies there are.
  using FileKey =
      std::tuple<std::string, std::string, std::string, int, std::int64_t, std::string, std::int64_t>;
  std::map<FileKey, RankSegment> files_;
  std::map<fs::path, ScanProblem> problems_;
};

fs::path real_path(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::weakly_canonical(path, error);
  return error ? path : real;
}

void Scanner::add_input(const fs::path& input) {
  std::error_code error;
  const fs::file_status status = fs::status(input, error);
  if (status.type() == fs::file_type::not_found) {
    throw Error(ErrorCode::kNotFound, "there is no file or folder '" + input.string() + "'");
  }
  if (fs::is_directory(status)) {
    enter(input);
  } else {
    add_file(input, nullptr);
  }
}

void Scanner::enter(const fs::path& folder) {
  if (!entered_.insert(real_path(folder)).second) return;
  Names names;
  try {
    names = list_folder(folder);
  } catch (const Error& error) {
    problems_.insert_or_assign(folder, ScanProblem{folder, error.code(), error.what()});
    return;
  }
  std::ranges::sort(names);
  bool holds_rank_files = false;
  for (const std::string& name : names) {
    if (!parse_rank_file_name(name)) continue;
    holds_rank_files = true;
    add_file(folder / name, &names);
  }
  report_orphans(folder, names);
  if (holds_rank_files) return;
  for (const std::string& name : names) {
    std::error_code ignored;
    if (!name.starts_with('.') && fs::is_directory(folder / name, ignored)) enter(folder / name);
  }
}

// Tail segments whose database is not there: rows that nobody would miss otherwise.
void Scanner::report_orphans(const fs::path& folder, const Names& names) {
  for (const std::string& name : names) {
    const std::size_t mark = name.find(".tail.");
    if (mark == std::string::npos) continue;
    const std::string database = name.substr(0, mark) + ".db";
    if (!parse_rank_file_name(database) || !parse_tail_segment_name(name, database)) continue;
    if (std::ranges::binary_search(names, database)) continue;
    const fs::path path = folder / name;
    problems_.insert_or_assign(path, ScanProblem{path, ErrorCode::kDamaged,
                                                 "'" + path.string() + "' holds rows of '" + database +
                                                     "', which is not beside it"});
  }
}

void Scanner::add_file(const fs::path& path, const Names* folder_names) {
  if (!read_.insert(real_path(path)).second) return;
  try {
    Snapshot snapshot = take_snapshot(path, folder_names);
    keep(RankSegment{path, std::move(snapshot.meta.info), std::move(snapshot.damage)});
  } catch (const Error& error) {
    problems_.insert_or_assign(path, ScanProblem{path, error.code(), error.what()});
  }
}

void Scanner::keep(RankSegment segment) {
  const Identity& identity = segment.info.identity;
  FileKey key(identity.project, identity.experiment, identity.launch_token, identity.rank,
              segment.info.start_time_ns, identity.host, identity.pid);
  const auto [kept, is_new] = files_.try_emplace(std::move(key), segment);
  if (is_new) return;
  // As FORMAT.md says: the one that has ended, else that with the most rows, else with the latest heartbeat.
  // Of equal ones the one that is whole, and then always the same.
  const auto extent = [](const RankSegment& copy) {
    return std::tuple(copy.info.end_time_ns.has_value(), copy.info.rows, copy.info.heartbeat_ns,
                      copy.damage.empty());
  };
  const auto have = extent(kept->second);
  const auto found = extent(segment);
  if (found > have || (found == have && segment.path < kept->second.path)) std::swap(kept->second, segment);
  report_left_out(segment, kept->second.path);
}

// Its damage would be told by nobody else.
void Scanner::report_left_out(const RankSegment& segment, const fs::path& kept) {
  if (segment.damage.empty()) return;
  const Damage& first = segment.damage.front();
  problems_.insert_or_assign(
      segment.path, ScanProblem{segment.path, ErrorCode::kDamaged,
                                "'" + segment.path.string() + "' is damaged (" + first.place + ": " +
                                    first.reason + "); '" + kept.string() + "' is read in its place"});
}

Attempt make_attempt(std::string token, std::vector<RankSegment> segments) {
  std::ranges::sort(segments, [](const RankSegment& a, const RankSegment& b) {
    return std::tie(a.info.identity.rank, a.info.start_time_ns, a.path) <
           std::tie(b.info.identity.rank, b.info.start_time_ns, b.path);
  });
  Attempt attempt;
  attempt.launch_token = std::move(token);
  attempt.start_time_ns = segments.front().info.start_time_ns;  // rank 0's first, if it is there
  for (const RankSegment& segment : segments) {
    if (segments.front().info.identity.rank != 0) {
      attempt.start_time_ns = std::min(attempt.start_time_ns, segment.info.start_time_ns);
    }
    if (const auto step = segment.info.identity.resume_step) {
      attempt.resume_step = std::min(attempt.resume_step.value_or(*step), *step);
    }
  }
  attempt.segments = std::move(segments);
  return attempt;
}

Experiment make_experiment(std::string project, std::string id,
                           std::map<std::string, std::vector<RankSegment>> by_token) {
  Experiment experiment{std::move(project), std::move(id), {}, {}};
  for (auto& [token, segments] : by_token) {
    experiment.attempts.push_back(make_attempt(token, std::move(segments)));
  }
  std::ranges::sort(experiment.attempts, [](const Attempt& a, const Attempt& b) {
    return std::tie(a.start_time_ns, a.launch_token) < std::tie(b.start_time_ns, b.launch_token);
  });
  int number = 0;
  for (Attempt& attempt : experiment.attempts) attempt.number = number++;
  experiment.folder = experiment.attempts.front().segments.front().path.parent_path();
  return experiment;
}

ScanResult Scanner::result() {
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::vector<RankSegment>>> grouped;
  for (auto& [key, segment] : files_) {
    const auto& [project, experiment, token, rank, start, host, pid] = key;
    grouped[{project, experiment}][token].push_back(std::move(segment));
  }
  ScanResult result;
  for (auto& [name, by_token] : grouped) {
    result.experiments.push_back(make_experiment(name.first, name.second, std::move(by_token)));
  }
  std::ranges::sort(result.experiments, [](const Experiment& a, const Experiment& b) {
    return std::tie(a.project, a.attempts.front().start_time_ns, a.id) <
           std::tie(b.project, b.attempts.front().start_time_ns, b.id);
  });
  for (auto& [path, problem] : problems_) result.problems.push_back(std::move(problem));
  return result;
}

}  // namespace

ScanResult scan(std::span<const fs::path> inputs) {
  // Which of several names of one file is kept must not depend on the order of the inputs.
  std::vector<fs::path> sorted(inputs.begin(), inputs.end());
  std::ranges::sort(sorted);
  Scanner scanner;
  for (const fs::path& input : sorted) scanner.add_input(input);
  return scanner.result();
}

}  // namespace ranklog
