#pragma once
// The rank files that queries run over, and what has been read of them.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ranklog/schema/experiment.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "ranklog/schema/supersession.hpp"

namespace ranklog::sql {

// One rank file and where it stands.
struct SourceFile {
  std::size_t index = 0;  // in Catalog::files()
  const Experiment* experiment = nullptr;
  const Attempt* attempt = nullptr;
  const RankSegment* segment = nullptr;
  // Rows at steps >= this were replaced by a later attempt, or by a rewind in a later file of the rank.
  std::optional<std::int64_t> superseded_from;

  [[nodiscard]] const Identity& identity() const { return segment->info.identity; }
};

struct OpenFile {
  OpenFile(RankFile opened, const SourceFile& source);

  RankFile file;
  Supersession superseded;
  std::vector<std::string> keys;             // display forms; index: KeyId
  std::vector<std::uint64_t> values_before;  // in the row groups before this one; index: row group
};

// How much a query has touched, since the catalog was made.
struct ReadCounts {
  std::uint64_t files_opened = 0;
  std::uint64_t groups_loaded = 0;  // chunks decoded, and tail groups read
};

struct ReadProblem {
  ErrorCode code;
  std::string message;  // names the file and the place
};

// Holds open the files used last, and the row groups decoded last, so that a join need not read them again
// and again. Memory: at most kOpenFiles open files, one more for a reader that is inside one pushed out, and
// about kGroupBytes of decoded rows.
//
// Threads: one at a time.
class Catalog {
 public:
  static constexpr std::size_t kOpenFiles = 64;
  static constexpr std::size_t kGroupBytes = std::size_t{64} << 20;

  explicit Catalog(std::vector<Experiment> experiments);
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;
  ~Catalog();

  [[nodiscard]] const std::vector<Experiment>& experiments() const noexcept { return experiments_; }
  // By experiment, attempt, rank.
  [[nodiscard]] std::span<const SourceFile> files() const noexcept { return files_; }

  // Null if the file cannot be read, which is then listed in problems().
  [[nodiscard]] std::shared_ptr<const OpenFile> open(const SourceFile& source);
  // Row group number `group` of the file; with `keys`, which ascend, at least their columns. Null if it is
  // damaged, which is then listed in problems().
  [[nodiscard]] std::shared_ptr<const RowGroup> load(const std::shared_ptr<const OpenFile>& open,
                                                     std::size_t group,
                                                     const std::optional<std::vector<KeyId>>& keys = {});

  void report(ErrorCode code, std::string message);  // each message once
  [[nodiscard]] const std::vector<ReadProblem>& problems() const noexcept { return problems_; }
  [[nodiscard]] const ReadCounts& counts() const noexcept { return counts_; }

  // What went wrong while SQLite called a table, which can only pass on a text; taken once.
  void note_failure(std::exception_ptr failure) noexcept { failure_ = std::move(failure); }
  [[nodiscard]] std::exception_ptr take_failure() noexcept { return std::exchange(failure_, nullptr); }

 private:
  struct CachedFile {
    std::size_t index;
    std::shared_ptr<const OpenFile> open;
  };
  struct CachedGroup {
    std::shared_ptr<const OpenFile> open;
    std::size_t group;
    std::optional<std::vector<KeyId>> keys;  // of its columns; empty: all
    std::shared_ptr<const RowGroup> rows;
    std::size_t bytes;

    [[nodiscard]] bool has(const std::optional<std::vector<KeyId>>& wanted) const;
  };

  // False for a file that others have pushed out while its reader goes on: what is cached of it would keep it
  // open.
  [[nodiscard]] bool holds(const std::shared_ptr<const OpenFile>& open) const;

  std::exception_ptr failure_;
  std::vector<Experiment> experiments_;
  std::vector<SourceFile> files_;
  std::list<CachedFile> open_files_;  // the last used first, as below
  std::list<CachedGroup> groups_;
  std::size_t group_bytes_ = 0;
  std::vector<ReadProblem> problems_;
  ReadCounts counts_;
};

}  // namespace ranklog::sql
