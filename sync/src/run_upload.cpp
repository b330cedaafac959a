#include "run_upload.hpp"

#include <map>
#include <optional>
#include <set>

#include "artifact_upload.hpp"
#include "conflict.hpp"
#include "history_upload.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/sync/url.hpp"
#include "run_document.hpp"
#include "run_files.hpp"
#include "run_header.hpp"

namespace ranklog::sync {
namespace {

// The requests that end a run, in order; none for one that crashed or still runs: "crashed" is what W&B makes
// of a run that never says it is complete.
std::vector<std::string> finish_bodies(const PlannedRun& run) {
  const auto complete = [](int code) {
    return "{\"complete\":true,\"exitcode\":" + std::to_string(code) + "}";
  };
  const int failure = run.exit_code == 0 ? 1 : run.exit_code;
  switch (run.state) {
    case RunState::kFinished:
      return {complete(0)};
    case RunState::kFailed:
      return {complete(failure)};
    case RunState::kPreempted:
      return {"{\"preempting\":true}", complete(failure)};
    case RunState::kCrashed:
    case RunState::kRunning:
      break;
  }
  return {};
}

// Faults of one item that say nothing about the rest.
bool concerns_one_item(ErrorCode code) {
  return code != ErrorCode::kTemporary && code != ErrorCode::kInterrupted;
}

class RunUpload {
 public:
  RunUpload(Session& session, UploadState& state, const PlannedExperiment& experiment, const PlannedRun& run,
            RunReport& report)
      : session_(session), state_(state), planned_(experiment), run_(run), report_(report) {
    address_ = {experiment.entity.empty() ? session.viewer.entity : experiment.entity, experiment.project,
                run.id};
  }

  void upload() {
    load_record();
    const std::optional<RemoteRun> remote = session_.api.find_run(address_);
    check_remote(remote);
    facts_ = read_facts(planned_.experiment, run_.rank);
    if (remote && batches_.empty()) adopt(*remote);
    survey();
    refuse_unreadable();
    session_.progress.expect_lines(survey_.lines);
    announce(remote.has_value());
    session_.progress.run_began(report_.url);
    stream_.emplace(session_.http, session_.access, address_);
    send_rows(remote ? remote->history_lines : 0);
    send_files_and_summary();
    if (run_.owns_artifacts) send_artifacts();
    finish();
  }
  [[nodiscard]] bool sent_anything() const noexcept { return sent_; }

 private:
  void load_record() {
    const std::string recipe = recipe_of(planned_, run_);
    if (auto record = state_.run(run_.id)) {
      record_ = *std::move(record);
      known_ = true;
      address_.entity = record_.entity;
      address_.project = record_.project;
      report_.url = run_url(session_.access.settings(), address_);
      if (record_.recipe != recipe) {
        throw ConflictError(
            "run " + run_.id + " was uploaded as " + record_.recipe + " and is now asked for as " + recipe,
            ErrorCode::kUsage);
      }
    }
    record_.run_id = run_.id;
    record_.recipe = recipe;
    batches_ = state_.batches(run_.id);
    left_out_ = state_.left_out(run_.id);
  }

  void check_remote(const std::optional<RemoteRun>& remote) const {
    const std::string place = address_.entity + "/" + address_.project;
    if (!remote && !batches_.empty()) {
      throw ConflictError("run " + run_.id + " was uploaded to " + place + " and is no longer there");
    }
    if (remote && !known_ && recorded_in_config(remote->config).recipe != record_.recipe) {
      throw ConflictError("run " + run_.id + " exists in " + place +
                          " already and was not made from these files");
    }
  }

  // No record of batches, and a run at the server: the upload state was lost, or another copy of the logs was
  // pushed. What the run's config says decides whether its lines are ours.
  void adopt(const RemoteRun& remote) {
    const RecordedRun recorded = recorded_in_config(remote.config);
    claim_ = recorded.claim;
    // A state that is there and has no batch says that nothing was sent from here: nothing to wait for.
    const std::uint64_t expected = claim_ && !known_ ? claim_->lines : 0;
    const auto ask = [this] { return ask_line_count(); };
    adopt_lines_ = patient_count(session_.http, ask, remote.history_lines, expected);
    for (const std::int64_t step : recorded.left_out) state_.leave_out(run_.id, std::nullopt, step);
    left_out_ = state_.left_out(run_.id);
  }

  void survey() {
    RunMerge merge(planned_.experiment, run_.rank, facts_, run_.newest_step_open);
    const HistoryKnown known{batches_, left_out_, adopt_lines_, claim_};
    survey_ = survey_history(merge, known, run_.id, session_.stop);
    for (const BatchRecord& batch : survey_.adopted) state_.save_batch(run_.id, batch);
    if (!survey_.adopted.empty()) batches_ = survey_.adopted;
    document_ = config_document(planned_, run_, facts_, merge.rules(), survey_);
    report_.lines = survey_.lines;
    report_.superseded_rows = survey_.counts.superseded_rows;
    report_.faults = survey_faults(survey_);
  }

  // An empty run would look like one that has logged nothing.
  void refuse_unreadable() {
    if (survey_.lines > 0 || survey_.damage.empty()) return;
    report_.faults.clear();
    throw Error(ErrorCode::kDamaged, unreadable_text(run_.rank, survey_));
  }

  // Creates or updates the run with what the server does not have of it.
  void announce(bool exists) {
    const RunHeader wanted = run_header(planned_, run_, address_);
    const std::string config = config_json(document_);
    const std::string config_hash = sha256_hex(config);
    if (!exists) record_.header.clear();
    // Of a run that a lost state knew, people may have changed the name since.
    if (exists && record_.header.empty()) record_.header = editable_text(wanted);
    RunHeader news = unconfirmed(wanted, record_.header);
    news.storage_id = record_.storage_id;
    if (!exists || record_.config_hash != config_hash) news.config = config;
    if (!exists || says_anything(news)) {
      sent_ = true;
      const UpsertedRun created = session_.api.upsert_run(news, session_.viewer.username);
      address_ = created.address;
      record_.entity = address_.entity;
      record_.project = address_.project;
      record_.storage_id = created.storage_id;
      record_.header = header_text(wanted);
      record_.config_hash = config_hash;
      record_.done.clear();
      save();
    }
    report_.url = run_url(session_.access.settings(), address_);
  }

  void send_rows(std::uint64_t server_lines) {
    const HistoryTarget target = {*stream_,
                                  session_.http,
                                  session_.access,
                                  state_,
                                  session_.stop,
                                  [this] { return ask_line_count(); },
                                  [this](std::uint64_t lines, std::uint64_t) {
                                    sent_ = true;
                                    report_.lines_sent += lines;
                                    session_.progress.count_lines(lines);
                                  }};
    const std::uint64_t first = reconcile_history(target, batches_, survey_.open_batch_matches, server_lines);
    session_.progress.count_lines(first);
    std::vector<std::int64_t> too_large;
    if (first < survey_.lines) {
      RunMerge merge(planned_.experiment, run_.rank, facts_, run_.newest_step_open);
      too_large = send_history(target, merge, left_out_, first, survey_.lines);
    }
    record_ = state_.run(run_.id).value_or(record_);  // batches clear its end
    if (!too_large.empty()) describe_again();
  }

  // Lines were left out while they were sent: what the run's config says about its history must agree.
  void describe_again() {
    batches_ = state_.batches(run_.id);
    left_out_ = state_.left_out(run_.id);
    adopt_lines_ = 0;
    survey();
    announce(true);
  }

  std::uint64_t ask_line_count() {
    const auto remote = session_.api.find_run(address_);
    if (!remote) throw Error(ErrorCode::kServer, "run " + run_.id + " was deleted while it was uploaded");
    return remote->history_lines;
  }

  void send_files_and_summary() {
    const std::map<std::string, std::string> uploaded = send_files();
    const std::string hash = sha256_hex(survey_.summary);
    if (uploaded.empty() && record_.summary_hash == hash) return;
    // Anything sent to the stream brings a finished run back to life, so its end must be sent again.
    sent_ = true;
    record_.finish.clear();
    record_.done.clear();
    save();
    std::vector<std::string> names;
    for (const auto& [name, md5] : uploaded) names.push_back(name);
    stream_->post(summary_body(survey_.summary, names), "summary of run " + run_.id);
    record_.summary_hash = hash;
    state_.save_run(record_, uploaded);
  }

  // MD5 by name of the run files that were put and of which the server is still to be told.
  std::map<std::string, std::string> send_files() {
    const std::vector<RunFile> files = {{"config.yaml", config_yaml(document_)},
                                        {"wandb-metadata.json", environment_json(planned_, run_)},
                                        {"wandb-summary.json", survey_.summary}};
    try {
      return put_run_files({session_.api, {session_.http, session_.access}, state_, address_}, files);
    } catch (const Error& error) {
      if (!concerns_one_item(error.code())) throw;
      report_.faults.push_back({error.code(), std::string("run files: ") + error.what()});
      return {};
    }
  }

  void send_artifacts() {
    report_.artifacts = planned_.artifacts.size();
    // A run that has ended at the server must not be woken.
    const bool alive = record_.finish.empty();
    const ArtifactTarget target = {session_.api,
                                   {session_.http, session_.access},
                                   state_,
                                   session_.features,
                                   address_,
                                   [this, alive] {
                                     if (alive) stream_->keep_alive();
                                   },
                                   [this](std::uint64_t bytes) { session_.progress.count_bytes(bytes); }};
    for (const PlannedArtifact& artifact : planned_.artifacts) {
      if (!artifact.removed && state_.artifact_id(artifact.client_id).empty())
        session_.progress.expect_bytes(artifact.bytes);
    }
    const ArtifactCounts counts = upload_artifacts(target, planned_.artifacts, report_.faults);
    report_.artifacts_sent = counts.sent;
    report_.artifacts_removed = counts.removed;
    sent_ = sent_ || report_.artifacts_sent > 0;
  }

  void finish() {
    std::string wanted;
    const std::vector<std::string> bodies = finish_bodies(run_);
    for (const std::string& body : bodies) wanted += body + '\n';
    if (record_.finish != wanted) {
      for (const std::string& body : bodies) stream_->post(body, "end of run " + run_.id);
      sent_ = true;
      record_.finish = wanted;
    }
    record_.done = report_.faults.empty() ? input_fingerprint(planned_, run_) : "";
    save();
  }

  void save() { state_.save_run(record_); }

  Session& session_;
  UploadState& state_;
  const PlannedExperiment& planned_;
  const PlannedRun& run_;
  RunReport& report_;
  RunAddress address_;
  RunRecord record_;
  bool known_ = false;  // an earlier push recorded the run
  bool sent_ = false;   // this push has changed something at the server
  std::vector<BatchRecord> batches_;
  std::set<std::int64_t> left_out_;
  std::uint64_t adopt_lines_ = 0;
  std::optional<HistoryClaim> claim_;
  RunFacts facts_;
  HistorySurvey survey_;
  ConfigDocument document_;
  std::optional<FileStream> stream_;
};

}  // namespace

std::string run_url(const ServerSettings& server, const RunAddress& run) {
  return server.app_url + "/" + percent_encode(run.entity) + "/" + percent_encode(run.project) + "/runs/" +
         percent_encode(run.run_id);
}

void upload_run(Session& session, UploadState& state, const PlannedExperiment& experiment,
                const PlannedRun& run, RunReport& report) {
  RunUpload upload(session, state, experiment, run, report);
  upload.upload();
  report.outcome = !report.faults.empty()   ? RunOutcome::kPartial
                   : upload.sent_anything() ? RunOutcome::kUploaded
                                            : RunOutcome::kUpToDate;
  report.checked = true;
}

}  // namespace ranklog::sync
