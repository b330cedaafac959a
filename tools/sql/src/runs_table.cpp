#include <variant>

#include "ranklog/schema/time.hpp"
#include "record_table.hpp"

namespace ranklog::sql {
namespace {

// Everything is known from the scan: a row needs no record of its own.
using Nothing = std::monostate;

enum Index : int {
  kWorldSize = kPlaceColumns,
  kLocalWorldSize,
  kState,
  kRowCount,
  kLastStep,
  kStarted,
  kStartTime,
  kEndTime,
  kHeartbeat,
  kExitCode,
  kDroppedRows,
  kSize,
  kHost,
  kPid,
  kGroupName,
  kJobType,
  kName,
  kNotes,
  kTags,
  kEntity,
  kLogStrategy,
  kResumeStep,
  kSupersededFrom,
  kLaunchToken,
  kProgram,
  kArguments,
  kGitCommit,
  kGitRemote,
  kFormatVersion,
  kPath,
};

std::vector<ColumnSpec> columns() {
  return with_place({
      {"world_size", "INTEGER", "ranks of the job"},
      {"local_world_size", "INTEGER", "ranks of its node"},
      {"state", "TEXT", "running, finished, failed, preempted or crashed"},
      {"rows", "INTEGER", "log() calls in the file"},
      {"last_step", "INTEGER", "greatest step logged"},
      {"started", "TEXT", "RFC 3339, UTC"},
      {"start_time", "REAL", "Unix seconds, as the next two"},
      {"end_time", "REAL", "NULL while it has not ended"},
      {"heartbeat", "REAL", "when the file was last written"},
      {"exit_code", "INTEGER", "of the process, if it said"},
      {"dropped_rows", "INTEGER", "rows that could not be kept"},
      {"size", "INTEGER", "bytes on disk"},
      {"host", "TEXT", "host name"},
      {"pid", "INTEGER", "process id there"},
      {"group_name", "TEXT", "W&B group"},
      {"job_type", "TEXT", "W&B job type"},
      {"name", "TEXT", "W&B run name"},
      {"notes", "TEXT", "notes"},
      {"tags", "TEXT", "JSON array"},
      {"entity", "TEXT", "W&B entity"},
      {"log_strategy", "TEXT", "main, node or all, if the trainer recorded one"},
      {"resume_step", "INTEGER", "first step that this attempt logged anew"},
      {"superseded_from", "INTEGER",
       "steps from here on were replaced by a later attempt or file of the rank"},
      {"launch_token", "TEXT", "what the files of one launch share"},
      {"program", "TEXT", "program"},
      {"arguments", "TEXT", "JSON array"},
      {"git_commit", "TEXT", "git commit"},
      {"git_remote", "TEXT", "git remote"},
      {"format_version", "INTEGER", "version of the file format"},
      {"path", "TEXT", "the rank file"},
  });
}

void identity_column(sqlite3_context* out, int column, const Identity& identity) {
  switch (column) {
    case kWorldSize:
      return sqlite3_result_int(out, identity.world_size);
    case kLocalWorldSize:
      return sqlite3_result_int(out, identity.local_world_size);
    case kHost:
      return result_text(out, identity.host);
    case kPid:
      return sqlite3_result_int64(out, identity.pid);
    case kGroupName:
      return result_text(out, identity.group);
    case kJobType:
      return result_text(out, identity.job_type);
    case kName:
      return result_text(out, identity.name);
    case kNotes:
      return result_text(out, identity.notes);
    case kTags:
      return result_list(out, identity.tags);
    case kEntity:
      return result_text(out, identity.entity);
    case kLogStrategy:
      return identity.log_strategy ? result_text(out, to_string(*identity.log_strategy))
                                   : sqlite3_result_null(out);
    case kResumeStep:
      return result_optional(out, identity.resume_step);
    case kLaunchToken:
      return result_text(out, identity.launch_token);
    case kProgram:
      return result_text(out, identity.program);
    case kArguments:
      return result_list(out, identity.arguments);
    case kGitCommit:
      return result_text(out, identity.git_commit);
    default:
      return result_text(out, identity.git_remote);
  }
}

void column(sqlite3_context* out, int column, const SourceFile& source, const Nothing& /*record*/) {
  const FileInfo& info = source.segment->info;
  switch (column) {
    case kState:
      return result_text(out, to_string(state_of(*source.experiment, *source.segment, unix_time_ns())));
    case kRowCount:
      return sqlite3_result_int64(out, static_cast<std::int64_t>(info.rows));
    case kLastStep:
      return result_optional(out, info.last_step);
    case kStarted:
      return result_text(out, rfc3339(info.start_time_ns));
    case kStartTime:
      return sqlite3_result_double(out, seconds(info.start_time_ns));
    case kEndTime:
      return info.end_time_ns ? sqlite3_result_double(out, seconds(*info.end_time_ns))
                              : sqlite3_result_null(out);
    case kHeartbeat:
      return sqlite3_result_double(out, seconds(info.heartbeat_ns));
    case kExitCode:
      return result_optional(out, info.exit_code);
    case kDroppedRows:
      return sqlite3_result_int64(out, static_cast<std::int64_t>(info.dropped_rows));
    case kSize:
      return sqlite3_result_int64(out, static_cast<std::int64_t>(info.stored_bytes));
    case kSupersededFrom:
      return result_optional(out, source.superseded_from);
    case kFormatVersion:
      return sqlite3_result_int(out, info.format_version);
    case kPath:
      return result_text(out, source.segment->path.string());
    default:
      return identity_column(out, column, info.identity);
  }
}

Records<Nothing> read(Catalog& /*catalog*/, const SourceFile& /*source*/, bool /*all_attempts*/) {
  return {Nothing{}};
}

}  // namespace

std::unique_ptr<Table> make_runs(Catalog& catalog, const ModuleOptions& options) {
  return std::make_unique<RecordTable<Nothing>>(columns(), RecordReader<Nothing>{read, column}, catalog,
                                                options);
}

}  // namespace ranklog::sql
