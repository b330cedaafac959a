#pragma once
// A rank file, and beside it the listing of what was logged into it.

#include <map>
#include <string>
#include <vector>

#include "listing.hpp"
#include "support/rank_file_builder.hpp"

namespace ranklog::test {

class LoggedFile {
 public:
  LoggedFile(const std::filesystem::path& path, const Identity& identity, std::int64_t start_time_ns);

  void row(std::int64_t step, const RankFileBuilder::Fields& fields, Stream stream = Stream::kHistory);
  void log(ConfigEntry entry);
  void log(MetricDefinition metric);
  void log(SummaryOverride entry);
  void log(Event event);
  void log(Artifact artifact);
  void log(RunFile file);
  void finish(EndState state, int exit_code);
  [[nodiscard]] RankFileBuilder& builder() noexcept { return builder_; }  // to seal, and the like

  // As list_file() must list it.
  [[nodiscard]] Listing listing() const;

 private:
  [[nodiscard]] std::int64_t now_ns() const noexcept;
  template <class Record>
  void stamp(Record& record) const;

  FileInfo info_;
  RankFileBuilder builder_;
  std::string name_;
  std::vector<std::string> keys_;
  std::vector<Json> rows_, events_, artifacts_;
  std::vector<std::pair<std::string, Json>> config_, metrics_, summary_, files_;  // by name
};

}  // namespace ranklog::test
