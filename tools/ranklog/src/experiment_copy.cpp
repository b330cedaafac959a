#include "ranklog/cli/experiment_copy.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "ranklog/cli/captured_files_check.hpp"
#include "ranklog/cli/command.hpp"
#include "ranklog/cli/inputs.hpp"
#include "ranklog/cli/text.hpp"
#include "ranklog/schema/captured_file.hpp"
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

// Where a copy grows before it has its name; removed unless it gets it.
class UnfinishedFolder {
 public:
  explicit UnfinishedFolder(fs::path final)
      : final_(std::move(final)),
        path_(final_.parent_path() / ("." + final_.filename().string().substr(0, kMostOfName) + ".partial-" +
                                      std::to_string(::getpid()))) {
    make_folder(path_);
  }
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;
  ~UnfinishedFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const noexcept { return path_; }

  void publish() {
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      if (entry.is_directory()) sync_folder(entry.path());
    }
    sync_folder(path_);
    std::error_code error;
    fs::rename(path_, final_, error);  // over an empty folder, too
    if (error) {
      throw Error(ErrorCode::kIo, "cannot create " + final_.string() + ": " + error.message(),
                  "name another folder for the copy");
    }
    sync_folder(final_.parent_path());
  }

 private:
  static constexpr std::size_t kMostOfName = 200;  // a file's name has at most 255 bytes
  fs::path final_, path_;
};

class Copier {
 public:
  explicit Copier(fs::path folder) : folder_(std::move(folder)) {}

  void add(const RankSegment& segment) {
    const fs::path target = free_name(segment);
    const Salvage salvage = copy_rank_file(segment.path, target);
    ++copy_.rank_files;
    copy_.rows += salvage.rows;
    copy_.rows_missing += salvage.rows_missing;
    for (const Damage& damage : salvage.damage) {
      add_problem(ErrorCode::kDamaged, segment.path.string() + ": " + damage.place + ": " + damage.reason);
    }
    for (const std::string& part : salvage.left_out) {
      add_problem(ErrorCode::kVersion, segment.path.string() + ": " + part +
                                           ": this version of ranklog does not know it (copy with one as new "
                                           "as the writer's)");
    }
    note_captured(target, segment.path.parent_path());
  }

  // After the rank files, whose names are then taken.
  void copy_captured() {
    for (const auto& [relative, places] : captured_) {
      if (stays_inside(relative)) {
        copy_captured(relative, places);
      } else {
        add_problem(ErrorCode::kDamaged, "the file " + relative + " lies outside its experiment");
      }
    }
    for (const fs::path& place : places_) copy_description(place);
  }

  ExperimentCopy take() { return std::move(copy_); }

 private:
  using Places = std::vector<fs::path>;

  void add_problem(ErrorCode code, std::string message) {
    copy_.problems.push_back({code, std::move(message)});
  }

  // Of two folders' files with one name the second gets the next free number.
  fs::path free_name(const RankSegment& segment) {
    const auto name = parse_rank_file_name(segment.path.filename().string());
    int number = name ? name->number : 0;
    std::string free = rank_file_name(segment.info.identity.rank, number);
    while (!taken_.insert(free).second) free = rank_file_name(segment.info.identity.rank, ++number);
    return folder_ / free;
  }

  // From the copy: what came later is not in it.
  void note_captured(const fs::path& copy, const fs::path& place) {
    const RankFile file = RankFile::open(copy);
    if (std::ranges::find(places_, place) == places_.end()) places_.push_back(place);
    for (const CapturedFile& captured : captured_files(file)) note_captured_file(captured.path, place);
    removals_.add(file);
  }

  void note_captured_file(const std::string& relative, const fs::path& place) {
    Places& places = captured_[relative];
    if (std::ranges::find(places, place) == places.end()) places.push_back(place);
  }

  // From the first of the folders that has it.
  void copy_captured(const std::string& relative, const Places& places) {
    std::optional<CopyProblem> problem;
    for (const fs::path& place : places) {
      try {
        copy_captured(place / relative, folder_ / relative);
        return;
      } catch (const TargetError&) {
        throw;
      } catch (const Error& error) {
        if (problem && error.code() == ErrorCode::kNotFound) continue;
        problem = CopyProblem{error.code(), error.what()};
      }
    }
    if (problem && problem->code == ErrorCode::kNotFound) {
      if (removals_.covers(relative)) return;
      problem->code = ErrorCode::kDamaged;  // as a chunk that is not there does
    }
    if (problem) copy_.problems.push_back(std::move(*problem));
  }

  void copy_captured(const fs::path& from, const fs::path& to) {
    std::error_code error;
    const fs::file_status status = fs::status(from, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      throw Error(ErrorCode::kDamaged, "'" + from.string() + "' is no regular file");
    }
    make_folder(to.parent_path());
    clone_file(from, to);
    ++copy_.captured_files;
  }

  void copy_description(const fs::path& from) {
    const fs::path target = folder_ / kExperimentFileName;
    std::error_code ignored;
    if (fs::exists(target, ignored) || !fs::exists(from / kExperimentFileName, ignored)) return;
    try {
      clone_file(from / kExperimentFileName, target);
    } catch (const TargetError&) {
      throw;
    } catch (const Error& error) {
      add_problem(error.code(), error.what());
    }
  }

  fs::path folder_;
  ExperimentCopy copy_;
  std::set<std::string> taken_;
  std::map<std::string, Places> captured_;  // the folders whose rank files name it
  Places places_;
  Removals removals_;
};

}  // namespace

ExperimentCopy copy_experiment(const Experiment& experiment, const fs::path& log_dir) {
  const fs::path folder = experiment_folder(log_dir, experiment.project, experiment.id);
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !fs::is_empty(folder, ignored)) {
    throw Error(ErrorCode::kBusy, folder.string() + " is not empty", "name another folder for the copy");
  }
  UnfinishedFolder unfinished(folder);
  Copier copier(unfinished.path());
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) copier.add(segment);
  }
  copier.copy_captured();
  unfinished.publish();
  ExperimentCopy copy = copier.take();
  copy.folder = folder;
  return copy;
}

int report_problems(const ExperimentCopy& copy) {
  int status = kExitOk;
  for (const CopyProblem& problem : copy.problems) {
    print_error("left out: " + printable(problem.message));
    status = worse(status, exit_status(problem.code));
  }
  return status;
}

}  // namespace ranklog::cli
