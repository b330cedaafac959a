#include "ranklog/writer/writer.hpp"

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>

#include "artifact.hpp"
#include "core.hpp"
#include "environment.hpp"
#include "json_rows.hpp"
#include "launch_choice.hpp"
#include "open_log.hpp"
#include "probes.hpp"
#include "settings.hpp"
#include "signals.hpp"
#include "writer_impl.hpp"

namespace ranklog {
namespace {

using namespace writer;  // the private parts of this library

using std::chrono::steady_clock;

// How long the destructor of an unfinished writer waits for the disk.
constexpr std::chrono::seconds kDestructorPatience{30};

Outcome not_ended(std::chrono::milliseconds limit) {
  Outcome outcome;
  outcome.durable = false;
  outcome.message = "the disk did not take the log within " + std::to_string(limit.count()) + " ms";
  return outcome;
}

void add_message(Outcome& outcome, const std::string& message) {
  outcome.message += (outcome.message.empty() ? "" : "; ") + message;
}

void add_capture_trouble(Outcome& outcome, const CaptureWorker& worker, bool in_time) {
  if (!in_time) add_message(outcome, "files were still being digested");
  if (const std::string trouble = worker.trouble(); !trouble.empty()) add_message(outcome, trouble);
  outcome.durable = outcome.durable && in_time && worker.trouble().empty();
}

}  // namespace

// A time-out is not kept: a later call may find that the disk has taken the log.
Outcome Writer::Impl::end(const std::optional<EndRecord>& record, std::chrono::milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  if (probes) probes->stop(deadline);
  const bool captured = core->worker->drain(deadline);
  core->worker->stop();
  core->recorder.close();
  core->sealer.request_stop(record, deadline);
  if (!core->sealer.wait_stopped(deadline)) return not_ended(limit);
  auto outcome = core->recorder.outcome(core->recorder.last_sequence());
  const std::string trouble = core->sealer.end_trouble();
  if (!trouble.empty()) add_message(outcome, trouble);
  add_capture_trouble(outcome, *core->worker, captured);
  finished = outcome;
  return outcome;
}

Writer::Impl::~Impl() {
  if (!core) return;
  if (!finish_tried) end(std::nullopt, kDestructorPatience);
  // A thread that hangs in the disk cannot be waited for; it holds all that it needs.
  if (!core->sealer.wait_stopped(steady_clock::now())) thread.detach();
}

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;

Writer& Writer::operator=(Writer&& other) noexcept {
  if (this != &other) {
    const Writer old(std::move(*this));
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Writer::~Writer() {
  // The thread, the locks and the files are the parent's: a forked child leaves its copy as it is.
  if (impl_ && impl_->in_child()) static_cast<void>(impl_.release());
}

LaunchChoice choose_launch(const Options& options, const LaunchRequest& request) {
  return choose_launch_for_all(resolve_settings(options, process_environment(), request));
}

Writer Writer::open(Options options) {
  const auto environment = process_environment();
  auto impl = std::make_unique<Impl>();
  if (logging_is_disabled(options, environment)) {
    impl->identity.project = options.project;
    impl->identity.experiment = options.choice ? options.choice->experiment : options.experiment;
    return Writer(std::move(impl));
  }
  const auto settings = resolve_settings(std::move(options), environment);
  const auto probes = resolve_probes(settings, environment);
  auto log = open_log(settings);
  try {
    const SignalsBlocked not_in_the_thread;
    impl->thread = std::jthread([core = log.core] { core->sealer.run(); });
  } catch (const std::system_error& error) {
    discard(log);
    throw Error(ErrorCode::kIo,
                "cannot start the thread that writes " + log.path.string() + ": " + error.what());
  }
  impl->probes.emplace(probes, log);
  impl->identity = std::move(log.identity);
  impl->path = std::move(log.path);
  impl->folder = std::move(log.folder);
  impl->core = std::move(log.core);
  return Writer(std::move(impl));
}

LogStatus Writer::log(std::int64_t step, std::span<const Field> fields) noexcept {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  return impl_->core->recorder.log(step, fields);
}

LogStatus Writer::log(std::int64_t step, std::initializer_list<Field> fields) noexcept {
  return log(step, std::span<const Field>(fields.begin(), fields.size()));
}

LogStatus Writer::log(std::span<const Field> fields) noexcept {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  return impl_->core->recorder.log(std::nullopt, fields);
}

LogStatus Writer::log(std::initializer_list<Field> fields) noexcept {
  return log(std::span<const Field>(fields.begin(), fields.size()));
}

Key Writer::key(std::string_view name) noexcept {
  if (!impl_ || impl_->refusal()) return {};
  try {
    return impl_->core->recorder.key(name);
  } catch (...) {
    return {};
  }
}

LogStatus Writer::log(std::int64_t step, std::span<const KeyedField> fields) noexcept {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  return impl_->core->recorder.log(step, fields);
}

LogStatus Writer::log(std::int64_t step, std::initializer_list<KeyedField> fields) noexcept {
  return log(step, std::span<const KeyedField>(fields.begin(), fields.size()));
}

// Runs what may run out of memory; a call that does keeps nothing.
template <class Call>
static LogStatus guarded(Call call) noexcept {
  try {
    return call();
  } catch (...) {
    return LogStatus::kDropped;
  }
}

LogStatus Writer::log_json(std::int64_t step, std::string_view object) noexcept {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  return guarded([&] {
    const auto row = parse_row(object);
    if (!row) return LogStatus::kRejected;
    return impl_->core->recorder.log(step, std::span<const PathField>(row->fields));
  });
}

// The worst of several: kOk, kInMemory, kDropped in this order.
template <class Entries>
static LogStatus record_all(Recorder& recorder, Entries&& entries) {
  auto worst = LogStatus::kOk;
  for (auto& entry : entries) worst = std::max(worst, recorder.record(std::move(entry)));
  return worst;
}

LogStatus Writer::config(std::initializer_list<Field> entries) noexcept {
  return config(std::span<const Field>(entries.begin(), entries.size()));
}

LogStatus Writer::config(std::span<const Field> entries) noexcept {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  return guarded([&] {
    std::vector<ConfigEntry> list;
    for (const auto& entry : entries) list.push_back(make_config_entry(entry.key, entry.value));
    return record_all(impl_->core->recorder, list);
  });
}

LogStatus Writer::config_json(std::string_view object) noexcept {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  return guarded([&] {
    auto list = parse_config(object);
    return list ? record_all(impl_->core->recorder, *list) : LogStatus::kRejected;
  });
}

LogStatus Writer::define_metric(const MetricDefinition& definition) noexcept {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  if (definition.name.empty()) return LogStatus::kRejected;
  return guarded([&] { return impl_->core->recorder.record(definition); });
}

LogStatus Writer::summary(std::initializer_list<Field> entries) noexcept {
  return summary(std::span<const Field>(entries.begin(), entries.size()));
}

LogStatus Writer::summary(std::span<const Field> entries) noexcept {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  return guarded([&] {
    std::vector<SummaryOverride> list;
    for (const auto& entry : entries) {
      if (is_reserved_name(entry.key)) return LogStatus::kRejected;
      list.push_back({KeyPath::flat(entry.key).display(), strict_json(entry.value)});
    }
    return record_all(impl_->core->recorder, list);
  });
}

LogStatus Writer::event(std::string_view kind, std::string_view json_object,
                        std::optional<std::int64_t> step) noexcept {
  if (!impl_) return LogStatus::kClosed;
  if (const auto refusal = impl_->refusal()) return *refusal;
  return guarded([&] {
    if (kind.empty() || is_reserved_event(kind) || !is_json_object(json_object)) return LogStatus::kRejected;
    Event event;
    event.step = step;
    event.kind = kind;
    event.json = json_object;
    return impl_->core->recorder.record(std::move(event));
  });
}

ArtifactBuilder Writer::artifact(std::string_view name, std::string_view type) {
  auto impl = std::make_shared<ArtifactBuilder::Impl>();
  if (impl_) impl->core = impl_->core;
  impl->artifact.name = name;
  impl->artifact.type = type;
  impl->artifact.metadata_json = "{}";
  return ArtifactBuilder(std::move(impl));
}

Outcome Writer::flush(std::chrono::milliseconds limit) noexcept {
  try {
    if (!impl_ || impl_->refusal()) return {};
    auto& core = *impl_->core;
    const auto deadline = steady_clock::now() + limit;
    if (impl_->probes) impl_->probes->flush(deadline);
    const bool captured = core.worker->drain(deadline);
    const auto through = core.recorder.last_sequence();
    if (!core.sealer.flush(deadline)) return not_ended(limit);
    Outcome outcome = core.recorder.outcome(through);
    add_capture_trouble(outcome, *core.worker, captured);
    return outcome;
  } catch (...) {
    return {.durable = false, .message = "out of memory"};
  }
}

Outcome Writer::finish(EndState state, std::optional<int> exit_code,
                       std::chrono::milliseconds limit) noexcept {
  try {
    if (!impl_ || impl_->refusal()) return {};
    const std::lock_guard lock(impl_->finish_mutex);
    impl_->finish_tried = true;
    return impl_->finished ? *impl_->finished : impl_->end(EndRecord{state, exit_code}, limit);
  } catch (...) {
    return {.durable = false, .message = "out of memory"};
  }
}

const Identity& Writer::identity() const noexcept {
  return impl_->identity;
}
const std::filesystem::path& Writer::path() const noexcept {
  return impl_->path;
}
const std::filesystem::path& Writer::folder() const noexcept {
  return impl_->folder;
}
bool Writer::enabled() const noexcept {
  return impl_ && impl_->core;
}

}  // namespace ranklog
