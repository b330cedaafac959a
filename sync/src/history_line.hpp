#pragma once
// One history row as W&B's JSON line.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/schema/history.hpp"
#include "ranklog/schema/key_path.hpp"

namespace ranklog::sync {

// {"_step":3,"_runtime":1.5,"_timestamp":1700000001.5,"a":{"b":1},"loss":0.31}: reserved members first, then
// by key path, so that a line depends on its row alone and not on what other keys the files hold.
class HistoryLinePrinter {
 public:
  explicit HistoryLinePrinter(const std::vector<KeyPath>& keys);

  // Appends the line, without a newline. Cells may come in any order.
  void append(std::string& out, const HistoryRow& row, std::int64_t runtime_ns);

 private:
  struct Key {
    std::vector<std::string> names;
    std::vector<std::string> members;  // each name quoted, with its ':'
    std::string flat_member;           // the whole path as one name
    std::uint32_t order = 0;           // among all keys by path
  };

  void append_cells(std::string& out);
  // Names that `key` shares with the path that is open.
  [[nodiscard]] static std::size_t shared_depth(const Key& key, const Key* open);

  std::vector<Key> keys_;
  std::vector<const HistoryCell*> sorted_;  // reused
};

}  // namespace ranklog::sync
