// The calls of Writer that bring files along, and those that point to artifacts.

#include <nlohmann/json.hpp>

#include "capture.hpp"
#include "json_rows.hpp"
#include "media.hpp"
#include "ranklog/schema/time.hpp"
#include "signals.hpp"
#include "writer_impl.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;
using namespace writer;  // the private parts of this library

using Json = nlohmann::ordered_json;

void require_logged(LogStatus status, std::string_view what) {
  if (status == LogStatus::kOk || status == LogStatus::kInMemory) return;
  throw Error(ErrorCode::kIo,
              std::string(what) + " could not be recorded: " +
                  (status == LogStatus::kClosed ? "the log is finished" : "the queue is full"));
}

// Of a kind that event() refuses to callers.
Event own_event(std::string_view kind, std::string json) {
  Event event;
  event.kind = kind;
  event.json = std::move(json);
  return event;
}

RunFile run_file(const StoredFile& stored, std::string name, std::string kind) {
  RunFile file;
  file.name = std::move(name);
  file.path = stored.path;
  file.size = stored.digests.size;
  file.md5 = stored.digests.md5;
  file.sha256 = stored.digests.sha256;
  file.kind = std::move(kind);
  return file;
}

// A relative path that stays where it is put.
void require_name(std::string_view name) {
  const fs::path path(name);
  const fs::path normal = path.lexically_normal();
  if (name.empty() || path.is_absolute() || normal != path || *normal.begin() == "..") {
    throw Error(ErrorCode::kUsage, "'" + std::string(name) + "' is no relative path of a file");
  }
}

// Everything that the worker needs to record one media value.
struct MediaDraft {
  Media media;
  std::string key;
  std::int64_t step = 0;
  std::int64_t time_ns = 0;
  std::vector<TakenFile> taken;
};

void record_media(Recorder& recorder, MediaDraft& draft) {
  std::vector<StoredFile> stored;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < draft.taken.size(); ++i) {
    stored.push_back(draft.taken[i].store());
    names.push_back(media_name(draft.media.kind, draft.key, draft.step, stored[i].digests.sha256,
                               draft.media.files[i].path.extension().string()));
    require_logged(recorder.record(run_file(stored[i], names[i], "media")), draft.key);
  }
  const std::string value = media_value(draft.media, stored, names);
  const Field field{draft.key, ValueView::json(value)};
  require_logged(recorder.log(Stream::kHistory, draft.step, draft.time_ns, {&field, 1}), draft.key);
}

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

LogStatus Writer::log_media(std::int64_t step, std::string_view key, const Media& media) {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  if (media.files.empty() || is_reserved_name(key) || !is_json_object(media.json)) {
    throw Error(ErrorCode::kUsage, "media '" + std::string(key) +
                                       "' has no file, a reserved key, or fields "
                                       "that are no JSON object");
  }
  if (step < 0 || impl_->core->recorder.is_closed()) {
    return step < 0 ? LogStatus::kRejected : LogStatus::kClosed;
  }
  const FileSizeSignalBlocked no_signal;
  const auto draft = std::make_shared<MediaDraft>();
  draft->media = media;
  draft->key = key;
  draft->step = step;
  draft->time_ns = unix_time_ns();
  for (const MediaFile& file : media.files)
    draft->taken.emplace_back(impl_->folder, file.path, media.capture);
  if (media.files.size() > 1)
    (void)media_value(media, std::vector<StoredFile>(media.files.size()),
                      std::vector<std::string>(media.files.size()));
  const bool added =
      impl_->core->worker->add([core = impl_->core, draft] { record_media(core->recorder, *draft); });
  return added ? LogStatus::kOk : LogStatus::kClosed;
}

LogStatus Writer::log_histogram(std::int64_t step, std::string_view key, std::span<const double> edges,
                                std::span<const double> counts) {
  const std::string value = histogram_value(edges, counts);
  return log(step, {{key, ValueView::json(value)}});
}

LogStatus Writer::save_file(const fs::path& path, std::string_view name, Capture capture) {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  if (impl_->core->recorder.is_closed()) return LogStatus::kClosed;
  std::string as = name.empty() ? path.filename().string() : std::string(name);
  require_name(as);
  const FileSizeSignalBlocked no_signal;
  const auto taken = std::make_shared<TakenFile>(impl_->folder, path, capture);
  const bool added = impl_->core->worker->add([core = impl_->core, taken, as = std::move(as)] {
    require_logged(core->recorder.record(run_file(taken->store(), as, "file")), as);
  });
  return added ? LogStatus::kOk : LogStatus::kClosed;
}

LogStatus Writer::rewind(std::int64_t step) noexcept {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  return impl_->core->recorder.rewind(step);
}

LogStatus Writer::use_artifact(std::string_view artifact, std::string_view type) noexcept {
  if (artifact.empty()) return LogStatus::kRejected;
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  try {
    return impl_->core->recorder.record(
        own_event(kArtifactUseEvent, json_text({{"artifact", artifact}, {"type", type}})));
  } catch (...) {
    return LogStatus::kDropped;
  }
}

LogStatus Writer::link_artifact(std::string_view name, std::string_view target,
                                const std::vector<std::string>& aliases) noexcept {
  if (name.empty() || target.empty()) return LogStatus::kRejected;
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  try {
    return impl_->core->recorder.record(own_event(
        kArtifactLinkEvent, json_text({{"artifact", name}, {"target", target}, {"aliases", aliases}})));
  } catch (...) {
    return LogStatus::kDropped;
  }
}

}  // namespace ranklog
