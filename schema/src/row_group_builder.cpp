#include <algorithm>
#include <numeric>
#include <utility>

#include "ranklog/schema/tail.hpp"

namespace ranklog {
namespace {

bool is_full(const RowGroup& group, std::size_t text_bytes) {
  return group.rows() >= kMaxGroupRows || group.rows() * group.columns.size() >= kMaxGroupValues ||
         text_bytes >= kMaxGroupTextBytes;
}

std::vector<KeyId> keys_of(const RowGroup& group) {
  std::vector<KeyId> keys;
  keys.reserve(group.columns.size());
  for (const Column& column : group.columns) keys.push_back(column.key());
  return keys;
}

}  // namespace

void RowGroupBuilder::add(const TailRow& row) {
  const Layout& layout = layout_of(row);
  KeySet& set = sets_[layout.set];
  if (is_full(groups_[set.group], set.text_bytes)) start_group(set, row.stream, keys_of(groups_[set.group]));
  RowGroup& group = groups_[set.group];
  group.sequence.push_back(row.sequence);
  group.step.push_back(row.step);
  group.time_ns.push_back(row.time_ns);
  for (std::size_t i = 0; i < group.columns.size(); ++i) {
    const ValueView value = row.fields[layout.field_of[i]].value;
    group.columns[i].push_back(value);
    set.text_bytes += value.text().size();
  }
  ++rows_;
}

std::vector<RowGroup> RowGroupBuilder::take() {
  std::vector<RowGroup> groups = std::move(groups_);
  *this = RowGroupBuilder();
  return groups;
}

// Rows are mostly logged with the same keys in the same order as before; only a new order costs a sort.
const RowGroupBuilder::Layout& RowGroupBuilder::layout_of(const TailRow& row) {
  order_.clear();
  for (const TailField& field : row.fields) order_.push_back(field.key);
  Layouts& known = layouts_[index_of(row.stream)];
  if (const auto found = known.by_order.find(order_); found != known.by_order.end()) return found->second;

  Layout layout;
  layout.field_of.resize(order_.size());
  std::iota(layout.field_of.begin(), layout.field_of.end(), 0u);
  std::ranges::sort(layout.field_of, {},
                    [&](std::uint32_t field) { return std::pair(order_[field], field); });
  // Of fields with one key the last is kept.
  std::vector<std::uint32_t> kept;
  std::vector<KeyId> keys;
  for (const std::uint32_t field : layout.field_of) {
    if (!keys.empty() && keys.back() == order_[field]) {
      kept.back() = field;
    } else {
      kept.push_back(field);
      keys.push_back(order_[field]);
    }
  }
  layout.field_of = std::move(kept);
  const auto [set, is_new] = known.of_set.try_emplace(keys, sets_.size());
  layout.set = set->second;
  if (is_new) start_group(sets_.emplace_back(), row.stream, keys);
  return known.by_order.emplace(order_, std::move(layout)).first->second;
}

void RowGroupBuilder::start_group(KeySet& set, Stream stream, const std::vector<KeyId>& keys) {
  set = KeySet{groups_.size(), 0};
  RowGroup& group = groups_.emplace_back();
  group.stream = stream;
  group.columns.reserve(keys.size());
  for (const KeyId key : keys) group.columns.emplace_back(key);
}

}  // namespace ranklog
