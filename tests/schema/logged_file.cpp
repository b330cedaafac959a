#include "logged_file.hpp"

#include <algorithm>

namespace ranklog::test {
namespace {

using Named = std::vector<std::pair<std::string, Json>>;

void replace_or_add(Named& entries, const std::string& name, Json content) {
  const auto found = std::ranges::find(entries, name, &Named::value_type::first);
  if (found == entries.end()) {
    entries.emplace_back(name, std::move(content));
  } else {
    found->second = std::move(content);
  }
}

}  // namespace

LoggedFile::LoggedFile(const std::filesystem::path& path, const Identity& identity,
                       std::int64_t start_time_ns)
    : builder_(path, identity, start_time_ns), name_(path.filename().string()) {
  info_.identity = identity;
  info_.start_time_ns = start_time_ns;
}

std::int64_t LoggedFile::now_ns() const noexcept {
  return info_.start_time_ns + static_cast<std::int64_t>(builder_.sequence()) * 1'000'000;
}

// After it has been given to the builder.
template <class Record>
void LoggedFile::stamp(Record& record) const {
  record.sequence = builder_.sequence();
  record.time_ns = now_ns();
}

void LoggedFile::row(std::int64_t step, const RankFileBuilder::Fields& fields, Stream stream) {
  builder_.row(step, fields, stream);
  Json values = Json::object();
  for (const auto& [key, value] : fields) {
    values[key] = value_to_list(value);
    if (std::ranges::find(keys_, key) == keys_.end()) keys_.push_back(key);
  }
  rows_.push_back(row_to_list(stream, builder_.sequence(), step, now_ns(), std::move(values)));
}

void LoggedFile::log(ConfigEntry entry) {
  builder_.operation(entry);
  replace_or_add(config_, entry.key, to_list(entry));
}
void LoggedFile::log(MetricDefinition metric) {
  builder_.operation(metric);
  replace_or_add(metrics_, metric.name, to_list(metric));
}
void LoggedFile::log(SummaryOverride entry) {
  builder_.operation(entry);
  replace_or_add(summary_, entry.key, to_list(entry));
}
void LoggedFile::log(Event event) {
  builder_.operation(event);
  stamp(event);
  events_.push_back(to_list(event));
}
void LoggedFile::log(Artifact artifact) {
  builder_.operation(artifact);
  stamp(artifact);
  artifacts_.push_back(to_list(artifact));
}
void LoggedFile::log(RunFile file) {
  builder_.operation(file);
  stamp(file);
  std::erase_if(files_, [&](const auto& known) { return known.first == file.name; });
  files_.emplace_back(file.name, to_list(file));
}

void LoggedFile::finish(EndState state, int exit_code) {
  builder_.finish(state, exit_code);
  info_.end_state = state;
  info_.exit_code = exit_code;
  info_.end_time_ns = now_ns();
}

Listing LoggedFile::listing() const {
  Listing listing = {{{"file", name_}, {"meta", meta_to_list(info_)}}};
  const auto add = [&](const char* what, Json content) {
    listing.push_back({{"file", name_}, {what, std::move(content)}});
  };
  for (const std::string& key : keys_) add("key", key);
  for (const Json& row : rows_) add("row", row);
  for (const auto& [name, entry] : config_) add("config", entry);
  for (const auto& [name, metric] : metrics_) add("metric", metric);
  for (const auto& [name, entry] : summary_) add("summary", entry);
  for (const Json& event : events_) add("event", event);
  for (const Json& artifact : artifacts_) add("artifact", artifact);
  for (const auto& [name, file] : files_) add("run_file", file);
  return listing;
}

}  // namespace ranklog::test
