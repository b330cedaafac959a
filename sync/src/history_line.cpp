#include "history_line.hpp"

#include <algorithm>
#include <numeric>

#include "json_text.hpp"

namespace ranklog::sync {
namespace {

// JSON from a caller may be spread over lines; a history line must be one.
void append_value(std::string& out, ValueView value) {
  const std::size_t begin = out.size();
  append_json(out, value);
  if (value.kind() != ValueKind::kJson) return;
  std::replace_if(
      out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
      [](char c) { return c == '\n' || c == '\r'; }, ' ');
}

bool is_prefix(const std::vector<std::string>& shorter, const std::vector<std::string>& longer) {
  return shorter.size() < longer.size() && std::equal(shorter.begin(), shorter.end(), longer.begin());
}

}  // namespace

HistoryLinePrinter::HistoryLinePrinter(const std::vector<KeyPath>& keys) {
  for (const KeyPath& path : keys) {
    Key& key = keys_.emplace_back();
    key.names = path.names;
    for (const std::string& name : path.names) append_member_name(key.members.emplace_back(), name);
    append_member_name(key.flat_member, path.display());
  }
  std::vector<std::uint32_t> by_path(keys_.size());
  std::iota(by_path.begin(), by_path.end(), 0U);
  std::sort(by_path.begin(), by_path.end(),
            [&](std::uint32_t a, std::uint32_t b) { return keys_[a].names < keys_[b].names; });
  for (std::uint32_t i = 0; i < by_path.size(); ++i) keys_[by_path[i]].order = i;
}

void HistoryLinePrinter::append(std::string& out, const HistoryRow& row, std::int64_t runtime_ns) {
  // `_step` must be an integer token, or resuming the run at W&B starts from 0 again.
  out += "{\"_step\":";
  out += std::to_string(row.step);
  out += ",\"_runtime\":";
  append_seconds(out, runtime_ns);
  out += ",\"_timestamp\":";
  append_seconds(out, row.time_ns);
  sorted_.clear();
  for (const HistoryCell& cell : row.cells) sorted_.push_back(&cell);
  std::sort(sorted_.begin(), sorted_.end(), [&](const HistoryCell* a, const HistoryCell* b) {
    return keys_[a->key].order < keys_[b->key].order;
  });
  append_cells(out);
  out.push_back('}');
}

void HistoryLinePrinter::append_cells(std::string& out) {
  const Key* open = nullptr;  // all but its last name are open objects
  std::vector<const HistoryCell*> blocked;
  for (const HistoryCell* cell : sorted_) {
    const Key& key = keys_[cell->key];
    // A value stands where this path needs an object: the path goes last, as one flat name.
    if (open != nullptr && is_prefix(open->names, key.names)) {
      blocked.push_back(cell);
      continue;
    }
    const std::size_t shared = shared_depth(key, open);
    if (open != nullptr) out.append(open->names.size() - 1 - shared, '}');
    out.push_back(',');
    for (std::size_t depth = shared; depth + 1 < key.names.size(); ++depth) {
      out += key.members[depth];
      out.push_back('{');
    }
    out += key.members.back();
    append_value(out, cell->value);
    open = &key;
  }
  if (open != nullptr) out.append(open->names.size() - 1, '}');
  for (const HistoryCell* cell : blocked) {
    out.push_back(',');
    out += keys_[cell->key].flat_member;
    append_value(out, cell->value);
  }
}

std::size_t HistoryLinePrinter::shared_depth(const Key& key, const Key* open) {
  if (open == nullptr) return 0;
  const std::size_t limit = std::min(key.names.size(), open->names.size()) - 1;
  std::size_t depth = 0;
  while (depth < limit && key.names[depth] == open->names[depth]) ++depth;
  return depth;
}

}  // namespace ranklog::sync
