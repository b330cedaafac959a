#include "file_stream.hpp"

#include <algorithm>

#include "loose_json.hpp"

namespace ranklog::standin {
namespace {

// Beyond this a gap is a mistake, not a loss.
constexpr std::uint64_t kMaxGap = 1'000'000;

void check_chunk(const std::string& stream, const Json& chunk) {
  const bool right = chunk.is_object() && chunk.contains("offset") && chunk["offset"].is_number_unsigned() &&
                     chunk.contains("content") && chunk["content"].is_array() &&
                     std::all_of(chunk["content"].begin(), chunk["content"].end(),
                                 [](const Json& line) { return line.is_string(); });
  if (!right) {
    throw ApiError(
        400, stream + " needs an object with a line number \"offset\" and a list of strings \"content\"");
  }
}

// Calls `use` for every chunk of a stream: one, or in the old client's form a list of them. Bodies can have
// megabytes, so nothing is copied.
template <typename Use>
void for_each_chunk(const Json& value, const Use& use) {
  if (!value.is_array()) return use(value);
  for (const Json& chunk : value) use(chunk);
}

const Json& files_of(const Json& body) {
  static const Json none = Json::object();
  return body.contains("files") ? body["files"] : none;
}

void check_summary(const Json& chunk) {
  if (chunk["content"].empty()) return;
  const auto summary = parse_loose(chunk["content"].back().get_ref<const std::string&>());
  if (!summary || !summary->is_object()) throw ApiError(400, "the summary is not a JSON object");
}

void check_offset(const Run& run, const std::string& stream, const Json& chunk) {
  if (chunk["offset"].get<std::uint64_t>() > run.lines(stream).count() + kMaxGap) {
    throw ApiError(400, stream + " offset " + chunk["offset"].dump() + " is far beyond the " +
                            std::to_string(run.lines(stream).count()) + " lines that are there");
  }
}

void check_files(const Run& run, const Json& files) {
  if (!files.is_object()) throw ApiError(400, "\"files\" is not an object");
  for (const auto& [stream, value] : files.items()) {
    if (stream != kSummaryFile && stream != kHistoryFile && stream != kEventsFile && stream != kConsoleFile) {
      throw ApiError(400, "file_stream knows no file \"" + stream + "\" (run " + run.facts.name + ")");
    }
    for_each_chunk(value, [&, &name = stream](const Json& chunk) {
      check_chunk(name, chunk);
      if (name == kSummaryFile) {
        check_summary(chunk);
      } else {
        check_offset(run, name, chunk);
      }
    });
  }
}

void check_body(const Run& run, const Json& body) {
  if (!body.is_object()) throw ApiError(400, "a file_stream body is a JSON object");
  const auto check = [&body](const char* key, bool (*right)(const Json&)) {
    if (body.contains(key) && !right(body[key])) {
      throw ApiError(400, std::string("\"") + key + "\" in a file_stream body has the wrong type");
    }
  };
  check("complete", [](const Json& value) { return value.is_boolean(); });
  check("preempting", [](const Json& value) { return value.is_boolean(); });
  check("exitcode", [](const Json& value) { return value.is_number_integer(); });
  check("dropped", [](const Json& value) { return value.is_number_integer(); });
  check("uploaded", [](const Json& value) {
    return value.is_array() &&
           std::all_of(value.begin(), value.end(), [](const Json& name) { return name.is_string(); });
  });
  for (const Json& name : body.value("uploaded", Json::array())) static_cast<void>(run.file_path(name));
  check_files(run, files_of(body));
}

void inspect_history_line(Run& run, std::uint64_t number) {
  const std::string where = "history line " + std::to_string(number);
  const RowFacts& row = run.rows()[number];
  if (!row.is_object) {
    run.note_anomaly(where + " is not a JSON object");
    return;
  }
  if (!row.step) {
    run.note_anomaly(where + " has no integer _step");
    return;
  }
  const auto before = number > 0 ? run.rows()[number - 1].step : std::nullopt;
  if (before && *before >= *row.step) {
    run.note_anomaly(where + ": _step " + std::to_string(*row.step) + " follows " + std::to_string(*before));
  }
}

void inspect_line(Run& run, const std::string& stream, std::uint64_t number, LineFile::Placed placed) {
  const std::string where = stream + " line " + std::to_string(number);
  if (placed == LineFile::Placed::kAfterGap) run.note_anomaly(where + " came after a gap");
  if (stream == kConsoleFile) return;  // its lines may be rewritten, and are plain text
  if (placed == LineFile::Placed::kReplaced) run.note_anomaly(where + " came again with other content");
  if (stream == kHistoryFile) {
    inspect_history_line(run, number);
  } else if (!parse_loose(run.lines(stream).line(number))) {
    run.note_anomaly(where + " is not JSON");
  }
}

void apply_chunk(Run& run, const std::string& stream, const Json& chunk) {
  const Json& content = chunk["content"];
  if (stream == kSummaryFile) {
    if (!content.empty()) run.set_summary(content.back());
    return;
  }
  auto number = chunk["offset"].get<std::uint64_t>();
  for (const Json& line : content) {
    const LineFile::Placed placed = run.lines(stream).put(number, line);
    if (stream == kHistoryFile) run.refresh_row(number);
    if (placed != LineFile::Placed::kSame) inspect_line(run, stream, number, placed);
    ++number;
  }
}

}  // namespace

void apply_file_stream(Run& run, const Json& body, long long now_ms) {
  check_body(run, body);
  if (run.facts.complete) run.facts.preempting = false;  // it had ended, and begins anew
  for (const auto& [stream, value] : files_of(body).items()) {
    for_each_chunk(value, [&run, &name = stream](const Json& chunk) { apply_chunk(run, name, chunk); });
  }
  for (const Json& name : body.value("uploaded", Json::array())) run.note_uploaded(name);
  if (body.value("preempting", false)) run.facts.preempting = true;
  run.facts.complete = body.value("complete", false);
  if (run.facts.complete) run.facts.exit_code = body.value("exitcode", 0);
  if (body.value("dropped", 0) > 0) {
    run.note_anomaly("the client dropped " + std::to_string(body["dropped"].get<int>()) + " lines");
  }
  run.facts.heartbeat_at_ms = now_ms;
  run.save();
}

}  // namespace ranklog::standin
