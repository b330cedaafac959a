#include "ranklog/sql/catalog.hpp"

#include <algorithm>

namespace ranklog::sql {
namespace {

// What a decoded group takes, roughly.
std::size_t bytes_of(const RowGroup& group) {
  std::size_t bytes = group.rows() * (24 + 9 * group.columns.size());
  for (const Column& column : group.columns) {
    for (const std::string& text : column.texts()) bytes += sizeof(text) + text.capacity();
  }
  return bytes;
}

// One line a file, however much of it is damaged.
std::string describe(const std::filesystem::path& path, const std::vector<Damage>& damage) {
  std::string text = path.string() + ": " + damage.front().place + ": " + damage.front().reason;
  if (damage.size() > 1) text += " (and " + std::to_string(damage.size() - 1) + " more damaged places)";
  return text;
}

}  // namespace

OpenFile::OpenFile(RankFile opened, const SourceFile& source)
    : file(std::move(opened)), superseded(source.superseded_from, file.rewinds()) {
  keys.reserve(file.keys().size());
  for (const KeyPath& key : file.keys()) keys.push_back(key.display());
  std::uint64_t values = 0;
  for (const RowGroupInfo& info : file.row_groups()) {
    values_before.push_back(values);
    values += info.rows * info.series.size();
  }
}

bool Catalog::CachedGroup::has(const std::optional<std::vector<KeyId>>& wanted) const {
  return !keys || (wanted && std::ranges::includes(*keys, *wanted));
}

Catalog::Catalog(std::vector<Experiment> experiments) : experiments_(std::move(experiments)) {
  for (const Experiment& experiment : experiments_) {
    for (const Attempt& attempt : experiment.attempts) {
      for (const RankSegment& segment : attempt.segments) {
        files_.push_back({files_.size(), &experiment, &attempt, &segment,
                          experiment.superseded_from(attempt.number, segment)});
      }
    }
  }
}

Catalog::~Catalog() = default;

std::shared_ptr<const OpenFile> Catalog::open(const SourceFile& source) {
  const auto found = std::find_if(open_files_.begin(), open_files_.end(),
                                  [&](const CachedFile& cached) { return cached.index == source.index; });
  if (found != open_files_.end()) {
    open_files_.splice(open_files_.begin(), open_files_, found);
    return open_files_.front().open;
  }
  try {
    auto open = std::make_shared<const OpenFile>(RankFile::open(source.segment->path), source);
    ++counts_.files_opened;
    const std::vector<Damage> damage = open->file.damage();
    if (!damage.empty()) report(ErrorCode::kDamaged, describe(source.segment->path, damage));
    open_files_.push_front({source.index, open});
  } catch (const Error& error) {
    report(error.code(), error.what());
    return nullptr;
  }
  if (open_files_.size() > kOpenFiles) {
    const auto evicted = open_files_.back().open;
    open_files_.pop_back();
    groups_.remove_if([&](const CachedGroup& cached) {
      if (cached.open != evicted) return false;
      group_bytes_ -= cached.bytes;
      return true;
    });
  }
  return open_files_.front().open;
}

std::shared_ptr<const RowGroup> Catalog::load(const std::shared_ptr<const OpenFile>& open, std::size_t group,
                                              const std::optional<std::vector<KeyId>>& keys) {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const CachedGroup& cached) {
    return cached.open == open && cached.group == group && cached.has(keys);
  });
  if (found != groups_.end()) {
    groups_.splice(groups_.begin(), groups_, found);
    return groups_.front().rows;
  }
  try {
    auto rows =
        std::make_shared<const RowGroup>(keys ? open->file.load(group, *keys) : open->file.load(group));
    ++counts_.groups_loaded;
    if (!holds(open)) return rows;
    groups_.push_front({open, group, keys, rows, bytes_of(*rows)});
  } catch (const Error& error) {
    report(error.code(), error.what());
    return nullptr;
  }
  group_bytes_ += groups_.front().bytes;
  while (group_bytes_ > kGroupBytes && groups_.size() > 1) {
    group_bytes_ -= groups_.back().bytes;
    groups_.pop_back();
  }
  return groups_.front().rows;
}

bool Catalog::holds(const std::shared_ptr<const OpenFile>& open) const {
  return std::any_of(open_files_.begin(), open_files_.end(),
                     [&](const CachedFile& cached) { return cached.open == open; });
}

void Catalog::report(ErrorCode code, std::string message) {
  const bool known = std::any_of(problems_.begin(), problems_.end(),
                                 [&](const ReadProblem& problem) { return problem.message == message; });
  if (!known) problems_.push_back({code, std::move(message)});
}

}  // namespace ranklog::sql
