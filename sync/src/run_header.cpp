#include "run_header.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include "json_access.hpp"
#include "name_rules.hpp"

namespace ranklog::sync {
namespace {

using nlohmann::json;

struct Field {
  const char* name;
  std::string RunHeader::* value;
  bool editable;
};
constexpr std::array<Field, 8> kFields = {{{"display_name", &RunHeader::display_name, true},
                                           {"group", &RunHeader::group, false},
                                           {"job_type", &RunHeader::job_type, false},
                                           {"notes", &RunHeader::notes, true},
                                           {"commit", &RunHeader::commit, false},
                                           {"repository", &RunHeader::repository, false},
                                           {"host", &RunHeader::host, false},
                                           {"program", &RunHeader::program, false}}};

std::string text_of(const RunHeader& header, bool editable_only) {
  json out = {{"tags", header.tags}};
  for (const Field& field : kFields) {
    if (field.editable || !editable_only) out[field.name] = header.*field.value;
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

RunHeader run_header(const PlannedExperiment& experiment, const PlannedRun& run, const RunAddress& address) {
  const Identity& identity = experiment.experiment.segments_of(run.rank).back()->info.identity;
  RunHeader out;
  out.run_id = run.id;
  out.entity = address.entity;
  out.project = address.project;
  out.display_name = run.name;
  out.group = run.group;
  out.job_type = run.job_type;
  out.notes = identity.notes;
  out.commit = identity.git_commit;
  out.repository = identity.git_remote;
  out.host = identity.host;
  out.program = identity.program;
  std::ranges::copy_if(identity.tags, std::back_inserter(out.tags), is_tag);
  return out;
}

std::string header_text(const RunHeader& header) {
  return text_of(header, false);
}

std::string editable_text(const RunHeader& header) {
  return text_of(header, true);
}

RunHeader unconfirmed(const RunHeader& wanted, const std::string& confirmed) {
  const json known = json::parse(confirmed, nullptr, /*allow_exceptions=*/false);
  // Text that is not UTF-8 is kept with U+FFFD: compare what would be kept.
  const json now = json::parse(header_text(wanted));
  RunHeader out = wanted;
  for (const Field& field : kFields) {
    if (at_path(known, {field.name}) == now[field.name]) (out.*field.value).clear();
  }
  if (at_path(known, {"tags"}) == now["tags"]) out.tags.clear();
  return out;
}

bool says_anything(const RunHeader& header) {
  return !header.config.empty() || !header.tags.empty() ||
         std::ranges::any_of(kFields, [&](const Field& field) { return !(header.*field.value).empty(); });
}

}  // namespace ranklog::sync
