#include "ranklog/cli/experiment_copy.hpp"

#include <set>
#include <system_error>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/file_copy.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/salvage.hpp"

namespace ranklog::cli {
namespace {

namespace fs = std::filesystem;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error(ErrorCode::kIo, "cannot create " + folder.string() + ": " + error.message(),
                "name a folder that can be written");
  }
}

// Paths in a file come from whoever wrote it: none may leave the folder.
bool stays_inside(const fs::path& relative) {
  if (relative.empty() || relative.is_absolute()) return false;
  const fs::path normal = relative.lexically_normal();
  return *normal.begin() != ".." && normal != ".";
}

class Copier {
 public:
  explicit Copier(fs::path folder) { copy_.folder = std::move(folder); }

  void add(const RankSegment& segment) {
    const fs::path from = segment.path.parent_path();
    const Salvage salvage = copy_rank_file(segment.path, free_name(segment));
    ++copy_.rank_files;
    copy_.rows += salvage.rows;
    copy_.rows_missing += salvage.rows_missing;
    for (const Damage& damage : salvage.damage) {
      copy_.problems.push_back(segment.path.string() + ": " + damage.place + ": " + damage.reason);
    }
    // From the copy: what came later is not in it.
    const RankFile file = RankFile::open(last_);
    for (const Artifact& artifact : file.artifacts()) {
      for (const ArtifactFile& part : artifact.files) add_captured(from, part.path);
    }
    for (const RunFile& part : file.files()) add_captured(from, part.path);
    add_description(from);
  }

  ExperimentCopy take() { return std::move(copy_); }

 private:
  // Of two folders' files with one name the second gets the next free number.
  fs::path free_name(const RankSegment& segment) {
    const auto name = parse_rank_file_name(segment.path.filename().string());
    fs::path path = copy_.folder / segment.path.filename();
    for (int number = name ? name->number : 0; taken_.contains(path.filename().string());) {
      path = copy_.folder / rank_file_name(segment.info.identity.rank, ++number);
    }
    taken_.insert(path.filename().string());
    return last_ = path;
  }

  void add_captured(const fs::path& from, const std::string& relative) {
    if (relative.empty() || !captured_.insert(relative).second) return;  // a reference, or there already
    if (!stays_inside(relative)) {
      copy_.problems.push_back("the file " + relative + " lies outside its experiment and is left out");
      return;
    }
    try {
      const fs::path target = copy_.folder / relative;
      make_folder(target.parent_path());
      clone_file(from / relative, target);
      ++copy_.captured_files;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      copy_.problems.emplace_back(error.what());
    }
  }

  void add_description(const fs::path& from) {
    const fs::path target = copy_.folder / kExperimentFileName;
    std::error_code ignored;
    if (fs::exists(target, ignored) || !fs::exists(from / kExperimentFileName, ignored)) return;
    clone_file(from / kExperimentFileName, target);
  }

  ExperimentCopy copy_;
  fs::path last_;
  std::set<std::string> taken_, captured_;
};

}  // namespace

ExperimentCopy copy_experiment(const Experiment& experiment, const fs::path& log_dir) {
  const fs::path folder = experiment_folder(log_dir, experiment.project, experiment.id);
  make_folder(folder);
  if (!fs::is_empty(folder)) {
    throw Error(ErrorCode::kBusy, folder.string() + " is not empty", "name another folder for the copy");
  }
  Copier copier(folder);
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) copier.add(segment);
  }
  return copier.take();
}

}  // namespace ranklog::cli
