#include "write_mode.hpp"

#include <algorithm>

#include "environment.hpp"

namespace ranklog::writer {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLocalSync{1000}, kLocalSeal{30'000}, kLocalHeartbeat{60'000};
// A commit without WAL opens, looks up and syncs about ten times, and is not needed for safety: the tail is.
// Readers on other nodes take a file that has been silent for ten minutes for a dead one's.
constexpr milliseconds kSharedSync{10'000}, kSharedSeal{480'000}, kSharedHeartbeat{480'000};

// What the user says: the option, else the variable. Empty if neither does.
struct Wish {
  std::string text, origin;
};

Wish wish(const std::string& option, const char* option_name, const EnvLookup& environment,
          const char* variable) {
  if (!option.empty()) return {option, option_name};
  return {lookup(environment, variable).value_or(""), variable};
}

[[noreturn]] void refuse(const Wish& wish, const char* words) {
  throw Error(ErrorCode::kUsage, wish.origin + "=" + wish.text + " is not understood",
              std::string("use ") + words);
}

void apply_tail(WriteMode& mode, const Wish& wish) {
  if (wish.text.empty()) return;
  if (wish.text != "mapped" && wish.text != "append") refuse(wish, "mapped or append");
  mode.tail = wish.text == "mapped" ? TailMode::kMapped : TailMode::kAppend;
  mode.reason += "; " + wish.origin + "=" + wish.text;
}

void apply_journal(WriteMode& mode, const Wish& wish) {
  if (wish.text.empty()) return;
  const auto journal = parse_journal_mode(wish.text);
  if (!journal) refuse(wish, "wal, persist, truncate or delete");
  mode.journal = *journal;
  mode.reason += "; " + wish.origin + "=" + wish.text;
}

milliseconds shorten(milliseconds interval, double jitter) {
  const auto most = static_cast<double>(interval.count()) / 2;
  return interval - milliseconds(static_cast<milliseconds::rep>(most * std::clamp(jitter, 0.0, 1.0)));
}

void set_intervals(WriteMode& mode, bool network, const Options& options, double jitter) {
  mode.sync_interval = options.sync_interval.value_or(network ? shorten(kSharedSync, jitter) : kLocalSync);
  mode.sync_interval = std::max(mode.sync_interval, milliseconds(1));
  mode.seal_interval = options.seal_interval.value_or(network ? shorten(kSharedSeal, jitter) : kLocalSeal);
  mode.heartbeat = network ? shorten(kSharedHeartbeat, jitter) : kLocalHeartbeat;
}

}  // namespace

WriteMode choose_write_mode(const std::filesystem::path& folder, const Options& options,
                            const EnvLookup& environment, double jitter) {
  const auto named = lookup(environment, "RANKLOG_FILE_SYSTEM");
  const FileSystemFacts facts = named ? describe_file_system(*named) : detect_file_system(folder);
  WriteMode mode;
  mode.tail = facts.tail;
  mode.journal = facts.journal;
  mode.file_system = facts.name;
  mode.reason = facts.reason + (named ? "; RANKLOG_FILE_SYSTEM=" + *named : "");
  set_intervals(mode, facts.network, options, jitter);
  apply_tail(mode, wish(options.tail, "Options::tail", environment, "RANKLOG_TAIL"));
  apply_journal(mode, wish(options.journal, "Options::journal", environment, "RANKLOG_JOURNAL"));
  return mode;
}

Durability durability_of(const WriteMode& mode) {
  Durability durability;
  durability.journal = mode.journal;
  durability.tail = to_string(mode.tail);
  durability.file_system = mode.file_system;
  durability.reason = mode.reason;
  return durability;
}

}  // namespace ranklog::writer
