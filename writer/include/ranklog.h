/* Logging from one rank into its own file, for C and for languages that call C. What each call promises is
 * what its counterpart in writer.hpp does.
 *
 *   ranklog_options options;
 *   ranklog_options_init(&options);
 *   options.project = "distributed-wandb";
 *   ranklog_error error;
 *   ranklog_writer* log = ranklog_open(&options, &error);
 *   if (log == NULL) { fprintf(stderr, "%s\n", error.message); return 1; }
 *   ranklog_field fields[] = {ranklog_f64("loss", 0.31), ranklog_i64("epoch", 1)};
 *   ranklog_log(log, step, fields, 2);
 *   ranklog_finish(log, RANKLOG_FINISHED, 0, NULL);
 *   ranklog_close(log);
 *
 * Texts are UTF-8, end with a zero byte where no length is given, and are copied before a call returns. A
 * NULL text is an empty one. Threads: every call may come from any thread, but ranklog_close() comes last.
 * After fork() the child's calls do nothing and return RANKLOG_CLOSED. No C++ exception crosses this
 * interface. */
#ifndef RANKLOG_WRITER_RANKLOG_H
#define RANKLOG_WRITER_RANKLOG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ranklog_writer ranklog_writer;
typedef struct ranklog_artifact ranklog_artifact;

/* What became of one call. Numbers here and below are frozen. */
typedef enum ranklog_status {
  RANKLOG_OK = 0,        /* survives the death of this process */
  RANKLOG_IN_MEMORY = 1, /* kept, but the disk refuses: lost if this process dies before it recovers */
  RANKLOG_DROPPED = 2,   /* not kept; counted */
  RANKLOG_REJECTED = 3,  /* a reserved, empty or missing name, a negative step, no JSON object */
  RANKLOG_DISABLED = 4,  /* logging is off */
  RANKLOG_CLOSED = 5     /* after ranklog_finish(), in a forked child, or for a NULL writer */
} ranklog_status;

typedef enum ranklog_end_state {
  RANKLOG_FINISHED = 0,
  RANKLOG_FAILED = 1,
  RANKLOG_PREEMPTED = 2
} ranklog_end_state;

typedef enum ranklog_error_code {
  RANKLOG_ERROR_NONE = 0,
  RANKLOG_ERROR_USAGE = 1,     /* a variable or argument is wrong or contradicts another */
  RANKLOG_ERROR_NOT_FOUND = 2, /* a file, or an experiment to resume */
  RANKLOG_ERROR_IO = 3,        /* the operating system refused */
  RANKLOG_ERROR_BUSY = 4,      /* somebody else owns it; the message names the owner */
  RANKLOG_ERROR_OTHER = 5
} ranklog_error_code;

typedef struct ranklog_error {
  ranklog_error_code code;
  char
      message[1024]; /* one sentence that names the thing, the place and the remedy; cut where it is longer */
} ranklog_error;

typedef enum ranklog_kind {
  RANKLOG_NULL = 0,
  RANKLOG_FLOAT64 = 1,
  RANKLOG_INT64 = 2,
  RANKLOG_BOOL = 3,
  RANKLOG_STRING = 4,
  RANKLOG_JSON = 5 /* JSON text: a list, or a typed object of W&B's */
} ranklog_kind;

typedef struct ranklog_field {
  const char* key; /* one name; a key with dots is one name too */
  ranklog_kind kind;
  double f64;
  int64_t i64; /* or a bool: 0 or not */
  const char* text;
  size_t text_bytes;
} ranklog_field;

ranklog_field ranklog_null(const char* key);
ranklog_field ranklog_f64(const char* key, double value);
ranklog_field ranklog_i64(const char* key, int64_t value);
ranklog_field ranklog_bool(const char* key, int value);
ranklog_field ranklog_string(const char* key, const char* text);
ranklog_field ranklog_json(const char* key, const char* json);

/* Broadcasts rank 0's text to every rank: the result lives until the next call. */
typedef const char* (*ranklog_agree)(const char* of_this_rank, void* context);

/* Fill by ranklog_options_init() first. NULL texts and negative numbers are looked up: RANKLOG_*, then
 * WANDB_*, then the launcher's variables, then the default. */
typedef struct ranklog_options {
  size_t struct_bytes; /* set by ranklog_options_init(); later versions only add members at the end */
  const char *log_dir, *project, *entity, *experiment, *group, *job_type, *name, *notes;
  const char* tags;         /* separated by commas */
  const char* log_strategy; /* "main", "node" or "all" */
  int rank, local_rank, world_size, local_world_size, node;
  int resume;          /* 1: this launch continues the experiment */
  int64_t resume_step; /* the first step that it logs anew */
  ranklog_agree
      agree; /* needed only where no launcher names the job; called by every rank, in ranklog_open() */
  void* agree_context;
  int disabled;       /* 1: every call does nothing */
  int strict;         /* 1: a step below the last one is rejected */
  int drop_when_full; /* 1: rather than wait for a slow disk */
  int64_t sync_interval_ms, seal_interval_ms;
  size_t chunk_rows, queue_bytes; /* 0: the default */
  int console; /* 1: records what is printed; 0: does not; negative: RANKLOG_CONSOLE, else 1 */
  int64_t system_metrics_interval_ms; /* 0: none; negative: RANKLOG_SYSTEM_METRICS, else 15000 */
} ranklog_options;

void ranklog_options_init(ranklog_options* options);

/* NULL if that fails; `error` (may be NULL) says why. The caller owns the result: ranklog_close(). */
ranklog_writer* ranklog_open(const ranklog_options* options, ranklog_error* error);
/* Frees the writer. One that was not finished keeps everything, and its file stays "not ended". */
void ranklog_close(ranklog_writer* writer);

ranklog_status ranklog_log(ranklog_writer* writer, int64_t step, const ranklog_field* fields, size_t count);
/* At the step after the greatest one logged. */
ranklog_status ranklog_log_next(ranklog_writer* writer, const ranklog_field* fields, size_t count);
ranklog_status ranklog_log_json(ranklog_writer* writer, int64_t step, const char* object);
/* A key looked up once, for calls that shall not look it up again; of this writer only. */
uint32_t ranklog_key(ranklog_writer* writer, const char* name);
ranklog_status ranklog_log_f64(ranklog_writer* writer, int64_t step, const uint32_t* keys,
                               const double* values, size_t count);
/* `edges` are one more than `counts`, of which there are at most 512. */
ranklog_status ranklog_log_histogram(ranklog_writer* writer, int64_t step, const char* key,
                                     const double* edges, const double* counts, size_t count);
/* What follows replaces everything of this rank from that step on. */
ranklog_status ranklog_rewind(ranklog_writer* writer, int64_t step);
ranklog_status ranklog_config(ranklog_writer* writer, const ranklog_field* entries, size_t count);
ranklog_status ranklog_config_json(ranklog_writer* writer, const char* object);
ranklog_status ranklog_summary(ranklog_writer* writer, const ranklog_field* entries, size_t count);
/* `summary`: of min, max, mean, last, first, none, separated by commas; `goal`: minimize, maximize or NULL.
 */
ranklog_status ranklog_define_metric(ranklog_writer* writer, const char* name, const char* step_metric,
                                     int hidden, int step_sync, const char* summary, const char* goal);
/* `step` below 0: none. `json_object` NULL: an empty one. Rejected: "rewind", "drop", "artifact_use",
 * "artifact_link" and kinds that begin with '_', which ranklog alone writes. */
ranklog_status ranklog_event(ranklog_writer* writer, const char* kind, const char* json_object, int64_t step);

typedef enum ranklog_media_kind {
  RANKLOG_IMAGE = 0,
  RANKLOG_AUDIO = 1,
  RANKLOG_VIDEO = 2,
  RANKLOG_HTML = 3,
  RANKLOG_TABLE = 4,
  RANKLOG_OBJECT3D = 5,
  RANKLOG_MOLECULE = 6,
  RANKLOG_PLOTLY = 7
} ranklog_media_kind;

/* How a file outside the experiment's folder comes into it: its blocks shared or copied; or linked, for one
 * that is never changed in place. */
typedef enum ranklog_capture { RANKLOG_COPY = 0, RANKLOG_LINK = 1 } ranklog_capture;

/* Files are captured before these return, and recorded once ranklog_flush() or _finish() has. 0; or -1, and
 * `error` (may be NULL) says why. `captions` may be NULL, `json_object` too: what W&B shows of the kind. */
int ranklog_log_media(ranklog_writer* writer, int64_t step, const char* key, ranklog_media_kind kind,
                      const char* const* paths, const char* const* captions, size_t count,
                      const char* json_object, ranklog_error* error);
int ranklog_save_file(ranklog_writer* writer, const char* path, const char* name, ranklog_capture capture,
                      ranklog_error* error);
/* "entity/project/name:alias", made elsewhere and used by this run. */
ranklog_status ranklog_use_artifact(ranklog_writer* writer, const char* artifact, const char* type);
/* `aliases`: separated by commas, or NULL. */
ranklog_status ranklog_link_artifact(ranklog_writer* writer, const char* name, const char* target,
                                     const char* aliases);

/* Collects one artifact version; NULL only without memory. Ends with ranklog_artifact_commit() or _discard().
 */
ranklog_artifact* ranklog_artifact_new(ranklog_writer* writer, const char* name, const char* type);
void ranklog_artifact_add_file(ranklog_artifact* artifact, const char* path, const char* name_in_artifact);
void ranklog_artifact_link_file(ranklog_artifact* artifact, const char* path, const char* name_in_artifact);
/* Something that stays where it is. `json_object` NULL: nothing is known of it. */
void ranklog_artifact_add_reference(ranklog_artifact* artifact, const char* url, const char* name_in_artifact,
                                    uint64_t size, const char* json_object);
/* How long W&B keeps the version; 0: for ever. */
void ranklog_artifact_ttl(ranklog_artifact* artifact, int64_t seconds);
void ranklog_artifact_alias(ranklog_artifact* artifact, const char* alias);
void ranklog_artifact_tag(ranklog_artifact* artifact, const char* tag);
void ranklog_artifact_description(ranklog_artifact* artifact, const char* text);
void ranklog_artifact_metadata(ranklog_artifact* artifact, const char* json_object);
void ranklog_artifact_step(ranklog_artifact* artifact, int64_t step);
/* 0 if it is recorded; else -1, and `error` (may be NULL) says why. Frees `artifact` either way. */
int ranklog_artifact_commit(ranklog_artifact* artifact, ranklog_error* error);
void ranklog_artifact_discard(ranklog_artifact* artifact);

typedef struct ranklog_outcome {
  int durable; /* 1: everything logged before survives power loss */
  uint64_t dropped_rows;
  char message[1024]; /* why not; empty if all is well */
} ranklog_outcome;

/* Both return whether all is durable, and fill `outcome` if it is not NULL. At most `limit_ms`. */
int ranklog_flush(ranklog_writer* writer, int64_t limit_ms, ranklog_outcome* outcome);
/* Idempotent; waits at most 30 s. */
int ranklog_finish(ranklog_writer* writer, ranklog_end_state state, int exit_code, ranklog_outcome* outcome);

/* Owned by the writer. Empty where logging is off. */
const char* ranklog_path(const ranklog_writer* writer);
const char* ranklog_folder(const ranklog_writer* writer);
const char* ranklog_experiment(const ranklog_writer* writer);
int ranklog_rank(const ranklog_writer* writer);
int ranklog_enabled(const ranklog_writer* writer);

#ifdef __cplusplus
}
#endif
#endif
