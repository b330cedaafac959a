#include "run_upload.hpp"

#include <map>
#include <optional>

#include "artifact_upload.hpp"
#include "history_upload.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/sync/url.hpp"
#include "run_document.hpp"

namespace ranklog::sync {
namespace {

struct RunFile {
  std::string name;
  std::string text;
};

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
    survey(remote);
    refuse_unreadable();
    announce(remote);
    stream_.emplace(session_.http, session_.access, address_);
    send_rows(remote ? remote->history_lines : 0);
    send_files_and_summary();
    if (run_.owns_artifacts) send_artifacts();
    finish();
  }

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
        throw Error(
            ErrorCode::kUsage,
            "run " + run_.id + " was uploaded as " + record_.recipe + " and is now asked for as " + recipe,
            "choose another id with --id");
      }
    }
    record_.run_id = run_.id;
    record_.recipe = recipe;
    batches_ = state_.batches(run_.id);
  }

  void check_remote(const std::optional<RemoteRun>& remote) const {
    const std::string place = address_.entity + "/" + address_.project;
    if (!remote && !batches_.empty()) {
      throw Error(ErrorCode::kServer,
                  "run " + run_.id + " was uploaded to " + place + " and is no longer there",
                  "upload it as a new run with --id");
    }
    if (remote && !known_ && recipe_in_config(remote->config) != record_.recipe) {
      throw Error(ErrorCode::kServer,
                  "run " + run_.id + " exists in " + place + " already and was not made from these files",
                  "choose another id with --id");
    }
  }

  void survey(const std::optional<RemoteRun>& remote) {
    RunMerge merge(planned_.experiment, run_.rank, facts_, run_.state == RunState::kRunning);
    // No record of batches, and lines at the server: the state file was lost.
    const std::uint64_t adopt = batches_.empty() && remote ? remote->history_lines : 0;
    survey_ = survey_history(merge, batches_, adopt, run_.id);
    for (const BatchRecord& batch : survey_.adopted) state_.save_batch(run_.id, batch);
    if (!survey_.adopted.empty()) batches_ = survey_.adopted;
    document_ = config_document(planned_, run_, facts_, merge.rules(), survey_);
    report_.lines = survey_.lines;
    report_.superseded_rows = survey_.counts.superseded_rows;
    for (const Damage& damage : survey_.damage) {
      report_.faults.push_back(
          {ErrorCode::kDamaged, "rows are missing: " + damage.place + ": " + damage.reason});
    }
    for (const std::int64_t step : survey_.overlong_steps) {
      report_.faults.push_back(
          {ErrorCode::kServer, "step " + std::to_string(step) + " is left out: its row is longer than the " +
                                   std::to_string(kMaxLineBytes) + " bytes that W&B takes"});
    }
    session_.progress.expect_lines(survey_.lines);
  }

  // An empty run would look like one that has logged nothing.
  void refuse_unreadable() {
    if (survey_.lines > 0 || survey_.damage.empty()) return;
    report_.faults.clear();
    const Damage& first = survey_.damage.front();
    throw Error(ErrorCode::kDamaged, "no row of rank " + std::to_string(run_.rank) +
                                         " can be read, so nothing of it is uploaded: " + first.place + ": " +
                                         first.reason);
  }

  [[nodiscard]] RunHeader header() const {
    const Identity& identity = planned_.experiment.segments_of(run_.rank).back()->info.identity;
    RunHeader out;
    out.storage_id = record_.storage_id;
    out.run_id = run_.id;
    out.entity = address_.entity;
    out.project = address_.project;
    out.display_name = run_.name;
    out.group = run_.group;
    out.job_type = run_.job_type;
    out.notes = identity.notes;
    out.commit = identity.git_commit;
    out.repository = identity.git_remote;
    out.host = identity.host;
    out.program = identity.program;
    out.tags = identity.tags;
    out.config = config_json(document_);
    return out;
  }

  static std::string hash_of(const RunHeader& header) {
    std::string text;
    for (const std::string* part :
         {&header.display_name, &header.group, &header.job_type, &header.notes, &header.commit,
          &header.repository, &header.host, &header.program, &header.config}) {
      text += *part + '\n';
    }
    for (const std::string& tag : header.tags) text += tag + '\n';
    return sha256_hex(text);
  }

  // Creates or updates the run, unless the server has exactly this already.
  void announce(const std::optional<RemoteRun>& remote) {
    const RunHeader wanted = header();
    const std::string hash = hash_of(wanted);
    if (!remote || record_.header_hash != hash) {
      const UpsertedRun created = session_.api.upsert_run(wanted, session_.viewer.username);
      address_ = created.address;
      record_.entity = address_.entity;
      record_.project = address_.project;
      record_.storage_id = created.storage_id;
      record_.header_hash = hash;
      record_.done.clear();
      save();
    }
    report_.url = run_url(session_.access.settings(), address_);
    session_.progress.run_began(report_.url);
  }

  void send_rows(std::uint64_t server_lines) {
    const HistoryTarget target = {*stream_,
                                  session_.http,
                                  session_.access,
                                  state_,
                                  [this] { return ask_line_count(); },
                                  [this](std::uint64_t lines, std::uint64_t) {
                                    report_.lines_sent += lines;
                                    session_.progress.count_lines(lines);
                                  }};
    const std::uint64_t first = reconcile_history(target, batches_, survey_.open_batch_matches, server_lines);
    session_.progress.count_lines(first);
    if (first < survey_.lines) {
      RunMerge merge(planned_.experiment, run_.rank, facts_, run_.state == RunState::kRunning);
      send_history(target, merge, first, survey_.lines);
    }
    record_ = state_.run(run_.id).value_or(record_);  // batches clear its end
  }

  std::uint64_t ask_line_count() {
    const auto remote = session_.api.find_run(address_);
    if (!remote) throw Error(ErrorCode::kServer, "run " + run_.id + " was deleted while it was uploaded");
    return remote->history_lines;
  }

  void send_files_and_summary() {
    const std::map<std::string, std::string> uploaded = put_run_files();
    const std::string hash = sha256_hex(survey_.summary);
    if (uploaded.empty() && record_.summary_hash == hash) return;
    // Anything sent to the stream brings a finished run back to life, so its end must be sent again.
    record_.finish.clear();
    record_.done.clear();
    save();
    std::vector<std::string> names;
    for (const auto& [name, md5] : uploaded) names.push_back(name);
    stream_->post(summary_body(survey_.summary, names), "summary of run " + run_.id);
    record_.summary_hash = hash;
    state_.save_run(record_, uploaded);
  }

  [[nodiscard]] std::vector<RunFile> run_files() const {
    return {{"config.yaml", config_yaml(document_)},
            {"wandb-metadata.json", environment_json(planned_, run_)},
            {"wandb-summary.json", survey_.summary}};
  }

  // Puts the files that have changed; returns their names, of which the server is still to be told, and MD5.
  std::map<std::string, std::string> put_run_files() {
    std::vector<RunFile> changed;
    std::vector<std::string> names;
    std::map<std::string, std::string> md5_by_name;
    for (RunFile& file : run_files()) {
      const std::string md5 = md5_hex(file.text);
      if (state_.file_md5(run_.id, file.name) == md5) continue;
      md5_by_name[file.name] = md5;
      names.push_back(file.name);
      changed.push_back(std::move(file));
    }
    if (changed.empty()) return {};
    try {
      const auto targets = session_.api.create_run_files(address_, names);
      for (const RunFile& file : changed) put_run_file(file, targets);
    } catch (const Error& error) {
      if (!concerns_one_item(error.code())) throw;
      report_.faults.push_back({error.code(), std::string("run files: ") + error.what()});
      return {};
    }
    return md5_by_name;
  }

  void put_run_file(const RunFile& file, const std::vector<UploadTarget>& targets) {
    for (const UploadTarget& target : targets) {
      if (target.name == file.name && !target.url.empty()) {
        put_text(session_.http, session_.access, target, file.text);
      }
    }
  }

  void send_artifacts() {
    report_.artifacts = planned_.artifacts.size();
    // A run that has ended at the server must not be woken.
    const bool alive = record_.finish.empty();
    const ArtifactTarget target = {session_.api,
                                   session_.http,
                                   session_.access,
                                   state_,
                                   session_.features,
                                   address_,
                                   [this, alive] {
                                     if (alive) stream_->keep_alive();
                                   },
                                   [this](std::uint64_t bytes) { session_.progress.count_bytes(bytes); }};
    for (const PlannedArtifact& artifact : planned_.artifacts) {
      if (state_.artifact_id(artifact.client_id).empty()) session_.progress.expect_bytes(artifact.bytes);
    }
    for (const PlannedArtifact& artifact : planned_.artifacts) {
      try {
        if (upload_artifact(target, artifact)) ++report_.artifacts_sent;
      } catch (const Error& error) {
        if (!concerns_one_item(error.code())) throw;
        report_.faults.push_back({error.code(), error.what()});
      }
    }
  }

  void finish() {
    std::string wanted;
    const std::vector<std::string> bodies = finish_bodies(run_);
    for (const std::string& body : bodies) wanted += body + '\n';
    if (record_.finish != wanted) {
      for (const std::string& body : bodies) stream_->post(body, "end of run " + run_.id);
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
  std::vector<BatchRecord> batches_;
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
  RunUpload(session, state, experiment, run, report).upload();
  report.outcome = report.faults.empty() ? RunOutcome::kUploaded : RunOutcome::kPartial;
}

}  // namespace ranklog::sync
