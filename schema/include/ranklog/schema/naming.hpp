#pragma once
// Names of folders and files under the log folder (FORMAT.md, "Layout"). Frozen with format version 1.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ranklog {

// Where logs go and where they are looked for if nobody names a folder: RANKLOG_DIR, else WANDB_DIR/ranklog,
// else ranklog in the working directory. `lookup` gives a variable's text; empty counts as not set.
[[nodiscard]] std::filesystem::path default_log_folder(
    const std::function<std::optional<std::string>(std::string_view name)>& lookup);

// Percent-encodes what a file name cannot hold ('/', NUL, '%', control characters, a leading '.').
// Reversible.
[[nodiscard]] std::string encode_file_name(std::string_view name);
[[nodiscard]] std::string decode_file_name(std::string_view encoded);

// <log_dir>/<project>/<experiment>
[[nodiscard]] std::filesystem::path experiment_folder(const std::filesystem::path& log_dir,
                                                      std::string_view project, std::string_view experiment);

// rank-00003.db for number 0, rank-00003.2.db for number 2. The number means nothing but "free".
[[nodiscard]] std::string rank_file_name(int rank, int number);

struct RankFileName {
  int rank = 0;
  int number = 0;
};
// Empty for a name that is not a rank database's.
[[nodiscard]] std::optional<RankFileName> parse_rank_file_name(std::string_view file_name);

// The tail segment `index` of a rank file: rank-00003.tail.7 beside rank-00003.db.
[[nodiscard]] std::filesystem::path tail_segment_path(const std::filesystem::path& rank_file, unsigned index);

// `name` as the name of an artifact: as it is, if it has letters, digits, '-', '_' and '.' only and at most
// 128 of them; else with '-' for what may not be there and "-<8 hex digits of SHA-256 of name>" at the end,
// so that different names stay different.
[[nodiscard]] std::string artifact_name(std::string_view name);

inline constexpr std::string_view kExperimentFileName = "experiment.json";
inline constexpr std::string_view kFilesFolderName = "files";
inline constexpr std::string_view kCheckpointsFolderName = "checkpoints";
inline constexpr std::string_view kSyncFolderName = ".wandb-sync";

}  // namespace ranklog
