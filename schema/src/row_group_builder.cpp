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
  const Layout& layout =
      layout_of(row.stream, row.fields.size(), [&](std::size_t field) { return row.fields[field].key; });
  KeySet& set = sets_[layout.set];
  RowGroup& group = group_for_row(set);
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

void RowGroupBuilder::add(const NumberRow& row) {
  const Layout& layout =
      layout_of(row.stream(), row.fields(), [&](std::size_t field) { return row.key(field); });
  RowGroup& group = group_for_row(sets_[layout.set]);
  group.sequence.push_back(row.sequence());
  group.step.push_back(row.step());
  group.time_ns.push_back(row.time_ns());
  for (std::size_t field = 0; field < layout.column_of.size(); ++field) {
    const std::uint32_t column = layout.column_of[field];
    if (column != kNoColumn) group.columns[column].push_back_number(row.kind(field), row.bits(field));
  }
  ++rows_;
}

std::vector<RowGroup> RowGroupBuilder::take() {
  std::vector<RowGroup> groups = std::move(groups_);
  *this = RowGroupBuilder(std::move(sink_));
  return groups;
}

void RowGroupBuilder::flush() {
  constexpr std::size_t kMostKept = 16;  // sets of keys whose memory is worth keeping
  for (RowGroup& group : groups_) {
    if (group.rows() > 0) sink_(group);
    group.clear_rows();
  }
  for (KeySet& set : sets_) set.text_bytes = 0;
  rows_ = 0;
  if (sets_.size() > kMostKept) *this = RowGroupBuilder(std::move(sink_));
}

// The group that the next row goes to.
RowGroup& RowGroupBuilder::group_for_row(KeySet& set) {
  RowGroup& group = groups_[set.group];
  if (!is_full(group, set.text_bytes)) return group;
  if (!sink_) {
    start_group(set, group.stream, keys_of(group));
    return groups_.back();
  }
  sink_(group);
  group.clear_rows();
  set.text_bytes = 0;
  return group;
}

// Rows are mostly logged with the same keys in the same order as the one before, or others before.
const RowGroupBuilder::Layout& RowGroupBuilder::layout_of(Stream stream, std::size_t fields, auto key_of) {
  bool as_before = layout_ != nullptr && stream == order_stream_ && fields == order_.size();
  for (std::size_t field = 0; as_before && field < fields; ++field)
    as_before = order_[field] == key_of(field);
  if (as_before) return *layout_;
  layout_ = nullptr;
  order_stream_ = stream;
  order_.resize(fields);
  for (std::size_t field = 0; field < fields; ++field) order_[field] = key_of(field);
  return *(layout_ = &find_layout(stream));
}

// Of order_. Only a new order costs a sort.
const RowGroupBuilder::Layout& RowGroupBuilder::find_layout(Stream stream) {
  Layouts& known = layouts_[index_of(stream)];
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
  layout.column_of.assign(order_.size(), kNoColumn);
  for (std::uint32_t column = 0; column < kept.size(); ++column) layout.column_of[kept[column]] = column;
  layout.field_of = std::move(kept);
  const auto [set, is_new] = known.of_set.try_emplace(keys, sets_.size());
  layout.set = set->second;
  if (is_new) start_group(sets_.emplace_back(), stream, keys);
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
