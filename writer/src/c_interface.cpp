// ranklog.h on top of writer.hpp. Nothing may throw out of here.

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "environment.hpp"
#include "ranklog.h"
#include "ranklog/writer/writer.hpp"

struct ranklog_writer {
  ranklog::Writer writer;
  std::string path, folder;
};

struct ranklog_artifact {
  ranklog::ArtifactBuilder builder;
  std::string failure;  // of a call before commit()
};

namespace {

using namespace ranklog;

static_assert(static_cast<int>(LogStatus::kOk) == RANKLOG_OK &&
              static_cast<int>(LogStatus::kInMemory) == RANKLOG_IN_MEMORY &&
              static_cast<int>(LogStatus::kDropped) == RANKLOG_DROPPED &&
              static_cast<int>(LogStatus::kRejected) == RANKLOG_REJECTED &&
              static_cast<int>(LogStatus::kDisabled) == RANKLOG_DISABLED &&
              static_cast<int>(LogStatus::kClosed) == RANKLOG_CLOSED);
static_assert(static_cast<int>(EndState::kFinished) == RANKLOG_FINISHED &&
              static_cast<int>(EndState::kFailed) == RANKLOG_FAILED &&
              static_cast<int>(EndState::kPreempted) == RANKLOG_PREEMPTED);

static_assert(static_cast<int>(MediaKind::kImage) == RANKLOG_IMAGE &&
              static_cast<int>(MediaKind::kPlotly) == RANKLOG_PLOTLY &&
              static_cast<int>(Capture::kLink) == RANKLOG_LINK);

std::string text_of(const char* text) {
  return text != nullptr ? text : "";
}

// Of a fixed size, always ended by a zero; cut between two characters of UTF-8.
template <std::size_t Size>
void copy_text(char (&to)[Size], const std::string& text) {
  std::size_t length = std::min(text.size(), Size - 1);
  while (length < text.size() && length > 0 && (text[length] & 0xC0) == 0x80) --length;
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

ranklog_error_code code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return RANKLOG_ERROR_USAGE;
    case ErrorCode::kNotFound:
      return RANKLOG_ERROR_NOT_FOUND;
    case ErrorCode::kIo:
      return RANKLOG_ERROR_IO;
    case ErrorCode::kBusy:
      return RANKLOG_ERROR_BUSY;
    default:
      return RANKLOG_ERROR_OTHER;
  }
}

void set_error(ranklog_error* error, ranklog_error_code code, const std::string& message) {
  if (error == nullptr) return;
  error->code = code;
  copy_text(error->message, message);
}

// Runs `call`; what it throws is in `error` afterwards, and false is returned.
template <class Call>
bool guarded(ranklog_error* error, Call call) noexcept {
  try {
    call();
    set_error(error, RANKLOG_ERROR_NONE, "");
    return true;
  } catch (const Error& e) {
    set_error(error, code_of(e.code()), e.what());
  } catch (const std::exception& e) {
    set_error(error, RANKLOG_ERROR_OTHER, e.what());
  } catch (...) {
    set_error(error, RANKLOG_ERROR_OTHER, "an exception that is not C++'s own");
  }
  return false;
}

// The same for calls with a status, where only memory can run out.
template <class Call>
ranklog_status status_of(const ranklog_writer* writer, Call call) noexcept {
  if (writer == nullptr) return RANKLOG_CLOSED;
  try {
    return static_cast<ranklog_status>(call());
  } catch (const Error&) {
    return RANKLOG_REJECTED;
  } catch (...) {
    return RANKLOG_DROPPED;
  }
}

ValueView value_of(const ranklog_field& field) {
  const auto text = [&] {
    return field.text == nullptr ? std::string_view() : std::string_view(field.text, field.text_bytes);
  };
  switch (field.kind) {
    case RANKLOG_FLOAT64:
      return field.f64;
    case RANKLOG_INT64:
      return field.i64;
    case RANKLOG_BOOL:
      return field.i64 != 0;
    case RANKLOG_STRING:
      return text();
    case RANKLOG_JSON:
      return ValueView::json(text());
    case RANKLOG_NULL:
      return nullptr;
  }
  throw Error(ErrorCode::kUsage, "no kind of value has the number " + std::to_string(field.kind));
}

MediaKind known_kind(ranklog_media_kind kind) {
  if (kind < RANKLOG_IMAGE || kind > RANKLOG_PLOTLY)
    throw Error(ErrorCode::kUsage, "no kind of media has the number " + std::to_string(kind));
  return static_cast<MediaKind>(kind);
}

// The same for calls that may be refused with a reason; 0 or -1.
template <class Call>
int done_by(const ranklog_writer* writer, ranklog_error* error, Call call) noexcept {
  const bool done = guarded(error, [&] {
    if (writer == nullptr) throw Error(ErrorCode::kUsage, "there is no writer (NULL)");
    const LogStatus status = call();
    if (status == LogStatus::kOk || status == LogStatus::kDisabled) return;
    throw Error(ErrorCode::kUsage,
                status == LogStatus::kClosed ? "the log has been finished" : "the step is below 0");
  });
  return done ? 0 : -1;
}

// Calls with the fields as C++ has them; one vector a thread, for log() must not allocate each time.
template <class Call>
ranklog_status with_fields(const ranklog_writer* writer, const ranklog_field* fields, std::size_t count,
                           Call call) noexcept {
  return status_of(writer, [&] {
    thread_local std::vector<Field> converted;
    converted.clear();
    for (std::size_t i = 0; i < count; ++i) {
      if (fields[i].key == nullptr) return LogStatus::kRejected;
      converted.push_back({fields[i].key, value_of(fields[i])});
    }
    return call(std::span<const Field>(converted));
  });
}

std::optional<int> known(int number) {
  return number < 0 ? std::nullopt : std::optional<int>(number);
}

ranklog_options default_options() {
  ranklog_options options{};
  options.struct_bytes = sizeof(options);
  options.rank = options.local_rank = options.world_size = options.local_world_size = options.node = -1;
  options.resume_step = options.sync_interval_ms = options.seal_interval_ms = -1;
  options.console = -1;
  options.system_metrics_interval_ms = -1;
  return options;
}

// Of a caller that was compiled against an earlier header, too: the members that it does not know are left
// at their defaults.
ranklog_options known_options(const ranklog_options* given) {
  constexpr std::size_t kFirstVersionBytes = sizeof(ranklog_options);
  if (given == nullptr || given->struct_bytes < kFirstVersionBytes) {
    throw Error(ErrorCode::kUsage, "the options were not filled by ranklog_options_init()");
  }
  if (given->struct_bytes > sizeof(ranklog_options)) {
    throw Error(ErrorCode::kUsage,
                "the program was compiled for a newer libranklog.so than this one: its options have " +
                    std::to_string(given->struct_bytes) + " bytes, and this library knows " +
                    std::to_string(sizeof(ranklog_options)),
                "install the newer library");
  }
  ranklog_options options = default_options();
  std::memcpy(&options, given, given->struct_bytes);
  return options;
}

Options options_of(const ranklog_options& from) {
  Options options;
  options.log_dir = text_of(from.log_dir);
  options.project = text_of(from.project);
  options.entity = text_of(from.entity);
  options.experiment = text_of(from.experiment);
  options.group = text_of(from.group);
  options.job_type = text_of(from.job_type);
  options.name = text_of(from.name);
  options.notes = text_of(from.notes);
  options.tags = writer::split_at_commas(text_of(from.tags));
  options.journal = text_of(from.journal);
  options.tail = text_of(from.tail);
  if (from.log_strategy != nullptr) options.log_strategy = parse_strategy(from.log_strategy);
  options.rank = known(from.rank);
  options.local_rank = known(from.local_rank);
  options.world_size = known(from.world_size);
  options.local_world_size = known(from.local_world_size);
  options.node = known(from.node);
  options.resume = from.resume != 0;
  if (from.resume_step >= 0) options.resume_step = from.resume_step;
  if (from.agree != nullptr) {
    options.agree = [agree = from.agree, context = from.agree_context](const std::string& text) {
      return text_of(agree(text.c_str(), context));
    };
  }
  options.disabled = from.disabled != 0;
  options.strict = from.strict != 0;
  options.when_full = from.drop_when_full != 0 ? WhenFull::kDrop : WhenFull::kBlock;
  if (from.sync_interval_ms >= 0) options.sync_interval = std::chrono::milliseconds(from.sync_interval_ms);
  if (from.seal_interval_ms >= 0) options.seal_interval = std::chrono::milliseconds(from.seal_interval_ms);
  if (from.chunk_rows > 0) options.chunk_rows = from.chunk_rows;
  if (from.queue_bytes > 0) options.queue_bytes = from.queue_bytes;
  if (from.console >= 0) options.console = from.console != 0;
  if (from.system_metrics_interval_ms >= 0)
    options.system_metrics_interval = std::chrono::milliseconds(from.system_metrics_interval_ms);
  return options;
}

int fill(ranklog_outcome* to, const Outcome& outcome) {
  if (to != nullptr) {
    to->durable = outcome.durable ? 1 : 0;
    to->dropped_rows = outcome.dropped_rows;
    copy_text(to->message, outcome.message);
  }
  return outcome.durable ? 1 : 0;
}

// A call that goes wrong is told by commit(): nothing is recorded then.
template <class Call>
void add(ranklog_artifact* artifact, Call call) noexcept {
  if (artifact == nullptr) return;
  try {
    call(artifact->builder);
  } catch (const std::exception& error) {
    try {
      if (artifact->failure.empty()) artifact->failure = error.what();
    } catch (...) {
      // Without memory for the reason, commit() will lack it too and say so.
    }
  }
}

ranklog_field field_of(const char* key, ranklog_kind kind) {
  ranklog_field field{};
  field.key = key;
  field.kind = kind;
  return field;
}

ranklog_field text_field(const char* key, ranklog_kind kind, const char* text) {
  ranklog_field field = field_of(key, kind);
  field.text = text;
  field.text_bytes = text != nullptr ? std::strlen(text) : 0;
  return field;
}

}  // namespace

extern "C" {

ranklog_field ranklog_null(const char* key) {
  return field_of(key, RANKLOG_NULL);
}
ranklog_field ranklog_f64(const char* key, double value) {
  ranklog_field field = field_of(key, RANKLOG_FLOAT64);
  field.f64 = value;
  return field;
}
ranklog_field ranklog_i64(const char* key, int64_t value) {
  ranklog_field field = field_of(key, RANKLOG_INT64);
  field.i64 = value;
  return field;
}
ranklog_field ranklog_bool(const char* key, int value) {
  ranklog_field field = field_of(key, RANKLOG_BOOL);
  field.i64 = value != 0 ? 1 : 0;
  return field;
}
ranklog_field ranklog_string(const char* key, const char* text) {
  return text_field(key, RANKLOG_STRING, text);
}
ranklog_field ranklog_json(const char* key, const char* json) {
  return text_field(key, RANKLOG_JSON, json);
}

void ranklog_options_init_sized(ranklog_options* options, size_t struct_bytes) {
  ranklog_options defaults = default_options();
  defaults.struct_bytes = struct_bytes;
  std::memcpy(options, &defaults, std::min(struct_bytes, sizeof(defaults)));
}

ranklog_writer* ranklog_open(const ranklog_options* options, ranklog_error* error) {
  std::unique_ptr<ranklog_writer> opened;
  guarded(error, [&] {
    opened.reset(new ranklog_writer{Writer::open(options_of(known_options(options))), {}, {}});
    if (!opened->writer.enabled()) return;
    opened->path = opened->writer.path().string();
    opened->folder = opened->writer.folder().string();
  });
  return opened.release();
}

void ranklog_close(ranklog_writer* writer) {
  delete writer;
}

ranklog_status ranklog_log(ranklog_writer* writer, int64_t step, const ranklog_field* fields, size_t count) {
  return with_fields(writer, fields, count, [&](auto all) { return writer->writer.log(step, all); });
}
ranklog_status ranklog_log_next(ranklog_writer* writer, const ranklog_field* fields, size_t count) {
  return with_fields(writer, fields, count, [&](auto all) { return writer->writer.log(all); });
}
ranklog_status ranklog_log_json(ranklog_writer* writer, int64_t step, const char* object) {
  return status_of(writer, [&] { return writer->writer.log_json(step, text_of(object)); });
}
uint32_t ranklog_key(ranklog_writer* writer, const char* name) {
  return writer != nullptr && name != nullptr ? writer->writer.key(name).id : Key{}.id;
}
ranklog_status ranklog_log_f64(ranklog_writer* writer, int64_t step, const uint32_t* keys,
                               const double* values, size_t count) {
  return status_of(writer, [&] {
    thread_local std::vector<KeyedField> fields;
    fields.clear();
    for (size_t i = 0; i < count; ++i) fields.push_back({Key{keys[i]}, values[i]});
    return writer->writer.log(step, std::span<const KeyedField>(fields));
  });
}
ranklog_status ranklog_log_histogram(ranklog_writer* writer, int64_t step, const char* key,
                                     const double* edges, const double* counts, size_t count) {
  return status_of(writer, [&] {
    if (key == nullptr || count == 0) return LogStatus::kRejected;
    try {
      return writer->writer.log_histogram(step, key, {edges, count + 1}, {counts, count});
    } catch (const Error&) {
      return LogStatus::kRejected;
    }
  });
}
ranklog_status ranklog_rewind(ranklog_writer* writer, int64_t step) {
  return status_of(writer, [&] { return writer->writer.rewind(step); });
}
int ranklog_log_media(ranklog_writer* writer, int64_t step, const char* key, ranklog_media_kind kind,
                      const char* const* paths, const char* const* captions, size_t count,
                      const char* json_object, ranklog_error* error) {
  return done_by(writer, error, [&] {
    Media media;
    media.kind = known_kind(kind);
    for (size_t i = 0; i < count; ++i) {
      media.files.push_back({text_of(paths[i]), captions != nullptr ? text_of(captions[i]) : ""});
    }
    if (json_object != nullptr) media.json = json_object;
    return writer->writer.log_media(step, text_of(key), media);
  });
}
int ranklog_save_file(ranklog_writer* writer, const char* path, const char* name, ranklog_capture capture,
                      ranklog_error* error) {
  return done_by(writer, error, [&] {
    return writer->writer.save_file(text_of(path), text_of(name), static_cast<Capture>(capture));
  });
}
ranklog_status ranklog_use_artifact(ranklog_writer* writer, const char* artifact, const char* type) {
  return status_of(writer, [&] { return writer->writer.use_artifact(text_of(artifact), text_of(type)); });
}
ranklog_status ranklog_link_artifact(ranklog_writer* writer, const char* name, const char* target,
                                     const char* aliases) {
  return status_of(writer, [&] {
    return writer->writer.link_artifact(text_of(name), text_of(target),
                                        writer::split_at_commas(text_of(aliases)));
  });
}
ranklog_status ranklog_config(ranklog_writer* writer, const ranklog_field* entries, size_t count) {
  return with_fields(writer, entries, count, [&](auto all) { return writer->writer.config(all); });
}
ranklog_status ranklog_config_json(ranklog_writer* writer, const char* object) {
  return status_of(writer, [&] { return writer->writer.config_json(text_of(object)); });
}
ranklog_status ranklog_summary(ranklog_writer* writer, const ranklog_field* entries, size_t count) {
  return with_fields(writer, entries, count, [&](auto all) { return writer->writer.summary(all); });
}
ranklog_status ranklog_define_metric(ranklog_writer* writer, const char* name, const char* step_metric,
                                     int hidden, int step_sync, const char* summary, const char* goal) {
  return status_of(writer, [&] {
    MetricDefinition metric;
    metric.name = text_of(name);
    metric.step_metric = text_of(step_metric);
    metric.hidden = hidden != 0;
    metric.step_sync = step_sync != 0;
    metric.summary = writer::split_at_commas(text_of(summary));
    metric.goal = text_of(goal);
    return writer->writer.define_metric(metric);
  });
}
ranklog_status ranklog_event(ranklog_writer* writer, const char* kind, const char* json_object,
                             int64_t step) {
  return status_of(writer, [&] {
    const auto at = step < 0 ? std::nullopt : std::optional<std::int64_t>(step);
    return writer->writer.event(text_of(kind), json_object != nullptr ? json_object : "{}", at);
  });
}

ranklog_artifact* ranklog_artifact_new(ranklog_writer* writer, const char* name, const char* type) {
  if (writer == nullptr) return nullptr;
  try {
    return new ranklog_artifact{writer->writer.artifact(text_of(name), text_of(type)), {}};
  } catch (...) {
    return nullptr;
  }
}
void ranklog_artifact_add_file(ranklog_artifact* artifact, const char* path, const char* name_in_artifact) {
  add(artifact,
      [&](ArtifactBuilder& builder) { builder.add_file(text_of(path), text_of(name_in_artifact)); });
}
void ranklog_artifact_link_file(ranklog_artifact* artifact, const char* path, const char* name_in_artifact) {
  add(artifact, [&](ArtifactBuilder& builder) {
    builder.add_file(text_of(path), text_of(name_in_artifact), Capture::kLink);
  });
}
void ranklog_artifact_add_reference(ranklog_artifact* artifact, const char* url, const char* name_in_artifact,
                                    uint64_t size, const char* json_object) {
  add(artifact, [&](ArtifactBuilder& builder) {
    builder.add_reference(text_of(url), text_of(name_in_artifact), size,
                          json_object != nullptr ? json_object : "{}");
  });
}
void ranklog_artifact_ttl(ranklog_artifact* artifact, int64_t seconds) {
  add(artifact, [&](ArtifactBuilder& builder) { builder.ttl(std::chrono::seconds(seconds)); });
}
void ranklog_artifact_alias(ranklog_artifact* artifact, const char* alias) {
  add(artifact, [&](ArtifactBuilder& builder) { builder.alias(text_of(alias)); });
}
void ranklog_artifact_tag(ranklog_artifact* artifact, const char* tag) {
  add(artifact, [&](ArtifactBuilder& builder) { builder.tag(text_of(tag)); });
}
void ranklog_artifact_description(ranklog_artifact* artifact, const char* text) {
  add(artifact, [&](ArtifactBuilder& builder) { builder.description(text_of(text)); });
}
void ranklog_artifact_metadata(ranklog_artifact* artifact, const char* json_object) {
  add(artifact, [&](ArtifactBuilder& builder) { builder.metadata_json(text_of(json_object)); });
}
void ranklog_artifact_step(ranklog_artifact* artifact, int64_t step) {
  add(artifact, [&](ArtifactBuilder& builder) { builder.step(step); });
}
int ranklog_artifact_commit(ranklog_artifact* artifact, ranklog_error* error) {
  const std::unique_ptr<ranklog_artifact> owned(artifact);
  const bool done = guarded(error, [&] {
    if (!owned) throw Error(ErrorCode::kUsage, "there is no artifact (NULL)");
    if (!owned->failure.empty()) throw Error(ErrorCode::kUsage, owned->failure);
    owned->builder.commit();
  });
  return done ? 0 : -1;
}
void ranklog_artifact_discard(ranklog_artifact* artifact) {
  delete artifact;
}

int ranklog_flush(ranklog_writer* writer, int64_t limit_ms, ranklog_outcome* outcome) {
  if (writer == nullptr) return fill(outcome, {});
  return fill(outcome, writer->writer.flush(std::chrono::milliseconds(limit_ms)));
}
int ranklog_finish(ranklog_writer* writer, ranklog_end_state state, int exit_code, ranklog_outcome* outcome) {
  if (writer == nullptr) return fill(outcome, {});
  return fill(outcome, writer->writer.finish(static_cast<EndState>(state), exit_code));
}

const char* ranklog_path(const ranklog_writer* writer) {
  return writer != nullptr ? writer->path.c_str() : "";
}
const char* ranklog_folder(const ranklog_writer* writer) {
  return writer != nullptr ? writer->folder.c_str() : "";
}
const char* ranklog_experiment(const ranklog_writer* writer) {
  return writer != nullptr ? writer->writer.identity().experiment.c_str() : "";
}
int ranklog_rank(const ranklog_writer* writer) {
  return writer != nullptr ? writer->writer.identity().rank : 0;
}
int ranklog_enabled(const ranklog_writer* writer) {
  return writer != nullptr && writer->writer.enabled() ? 1 : 0;
}

}  // extern "C"
