// The Run type.

#include <algorithm>

#include "disk.hpp"
#include "history_query.hpp"
#include "loose_json.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/naming.hpp"
#include "schema.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

void add_identity(Object& object, const Scope& scope, Project& project, const Run& run) {
  const RunFacts& facts = run.facts;
  const auto attribute = [&facts](const char* name) { return facts.attributes.value(name, Json(nullptr)); };
  object.value("id", facts.id);
  object.value("name", facts.name);
  object.value("displayName", attribute("displayName"));
  object.value("description", attribute("description"));
  object.value("notes", attribute("notes"));
  object.value("group", attribute("groupName"));
  object.value("groupName", attribute("groupName"));
  object.value("jobType", attribute("jobType"));
  object.value("commit", attribute("commit"));
  object.value("host", attribute("host"));
  object.value("sweepName", attribute("sweep"));
  object.value("tags", facts.tags);
  object.value("readOnly", false);
  object.value("stopped", false);
  object.value("projectId", std::to_string(project.number));
  object.value("createdAt", format_time(facts.created_at_ms));
  object.value("heartbeatAt", format_time(facts.heartbeat_at_ms));
  object.value("state", run.state(scope.now(), scope.service.settings.crash_after));
  object.field("user", {}, [name = scope.service.settings.default_entity()](const Json&) {
    return Node(plain_object("User", {{"name", name}, {"username", name}}));
  });
  object.field("project", {},
               [scope, &project](const Json&) { return Node(project_object(scope, project)); });
}

// Of the config's "_wandb" entry, the keys asked for.
Json wandb_config(const Run& run, const Json& keys) {
  const auto config = parse_loose(run.config_text());
  const Json entry = config.value_or(Json::object()).value("_wandb", Json::object());
  const Json values = entry.is_object() ? entry.value("value", Json::object()) : Json::object();
  Json out = Json::object();
  for (const Json& key : keys) {
    if (key.is_string() && values.contains(key.get<std::string>())) out[key] = values[key.get<std::string>()];
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void add_documents(Object& object, const Run& run) {
  object.value("config", run.config_text());
  object.value("summaryMetrics", run.summary_text());
  object.value("systemMetrics", "{}");
  object.field("wandbConfig", {"keys"}, [&run](const Json& arguments) {
    return Node(wandb_config(run, arguments.value("keys", Json::array())));
  });
}

void add_rows(Object& object, const Run& run) {
  object.value("historyLineCount", run.lines(kHistoryFile).count());
  object.value("eventsLineCount", run.lines(kEventsFile).count());
  object.value("logLineCount", run.lines(kConsoleFile).count());
  object.field("historyTail", {}, [&run](const Json&) { return Node(tail(run.lines(kHistoryFile))); });
  object.field("eventsTail", {}, [&run](const Json&) { return Node(tail(run.lines(kEventsFile))); });
  object.field("historyKeys", {}, [&run](const Json&) { return Node(history_keys(run)); });
  object.field("history", {"minStep", "maxStep", "samples"}, [&run](const Json& arguments) {
    return Node(history_lines(run, arguments.value("minStep", Json(nullptr)),
                              arguments.value("maxStep", Json(nullptr)),
                              arguments.value("samples", Json(nullptr))));
  });
  object.field("events", {"samples"}, [&run](const Json& arguments) {
    return Node(stream_lines(run.lines(kEventsFile), arguments.value("samples", Json(nullptr))));
  });
  object.field("sampledHistory", {"specs"}, [&run](const Json& arguments) {
    return Node(sampled_history(run, arguments.value("specs", Json::array())));
  });
  // Nothing is exported here, so everything is a live row.
  object.field("parquetHistory", {"liveKeys"}, [&run](const Json&) {
    Json rows = Json::array();
    for (const Json& line : history_lines(run, nullptr, nullptr, nullptr)) {
      rows.push_back(parse_loose(line.get_ref<const std::string&>()).value_or(Json(nullptr)));
    }
    return Node(plain_object("ParquetHistory", {{"parquetUrls", Json::array()}, {"liveData", rows}}));
  });
}

ObjectPtr run_file_object(const Scope& scope, const Run& run, const std::string& name) {
  const fs::path path = run.file_path(name);
  const FileDigests digests = digest_file(path);
  const std::string url = scope.url(scope.service.uploads.grant_read(path));
  auto file = std::make_shared<Object>("File");
  file->value("id", node_id("File:" + run.facts.name + ":" + name));
  file->value("name", name);
  file->value("directUrl", url);
  file->field("url", {"upload"}, [url](const Json&) { return Node(Json(url)); });
  file->value("sizeBytes", digests.size);
  file->value("mimetype", "application/octet-stream");
  file->value("updatedAt", format_time(run.facts.heartbeat_at_ms));
  file->value("md5", base64_of_hex(digests.md5));
  return file;
}

// SQL's LIKE, as the files query has it: '%' stands for any characters.
std::string pattern_of(std::string like) {
  for (char& c : like) {
    if (c == '%') c = '*';
  }
  return like;
}

bool asked_for(const std::string& name, const Json& arguments) {
  const Json names = arguments.value("names", Json(nullptr));
  if (names.is_array() && !names.empty()) return std::find(names.begin(), names.end(), name) != names.end();
  const std::string like = text_or(arguments, "pattern", "");
  return like.empty() || matches_pattern(pattern_of(like), name);
}

void add_files(Object& object, const Scope& scope, const Run& run) {
  object.value("fileCount", run.file_names().size());
  object.field("files", {"names", "first", "after", "pattern"}, [scope, &run](const Json& arguments) {
    std::vector<ObjectPtr> files;
    for (const std::string& name : run.file_names()) {
      if (asked_for(name, arguments)) files.push_back(run_file_object(scope, run, name));
    }
    return Node(connection("File", std::move(files), arguments));
  });
}

void add_artifacts(Object& object, const Scope& scope, Project& project, const Run& run) {
  object.field("outputArtifacts", {"first", "after"}, [scope, &project, &run](const Json& arguments) {
    std::vector<ObjectPtr> artifacts;
    for (auto& [name, collection] : project.collections) {
      for (auto& [number, artifact] : collection.artifacts) {
        if (artifact.run_name == run.facts.name) {
          artifacts.push_back(artifact_object(scope, {&project, &collection, &artifact}));
        }
      }
    }
    return Node(connection("Artifact", std::move(artifacts), arguments));
  });
  object.field("inputArtifacts", {"first", "after"}, [scope, &run](const Json& arguments) {
    std::vector<ObjectPtr> artifacts;
    for (const std::string& id : run.facts.used_artifacts) {
      if (const ArtifactPlace place = scope.store().find_artifact(id)) {
        artifacts.push_back(artifact_object(scope, place));
      }
    }
    return Node(connection("Artifact", std::move(artifacts), arguments));
  });
}

}  // namespace

ObjectPtr run_object(const Scope& scope, Project& project, Run& run) {
  auto object = std::make_shared<Object>("Run");
  add_identity(*object, scope, project, run);
  add_documents(*object, run);
  add_rows(*object, run);
  add_files(*object, scope, run);
  add_artifacts(*object, scope, project, run);
  return object;
}

}  // namespace ranklog::standin
