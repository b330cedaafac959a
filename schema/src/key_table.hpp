#pragma once
// The keys of a rank file by id, from the table and the tail.

#include <string>
#include <vector>

#include "ranklog/schema/key_path.hpp"
#include "ranklog/schema/rank_file.hpp"

namespace ranklog {

class KeyTable {
 public:
  explicit KeyTable(std::vector<Damage>& damage) : damage_(damage) {}

  void define(KeyId id, KeyPath path);
  // Makes an id that rows use valid: one whose name is lost gets a name that says so, and is damage.
  // False for an id that cannot be one.
  [[nodiscard]] bool require(KeyId id);
  [[nodiscard]] std::vector<KeyPath> take();

 private:
  // Ids are dense; one far beyond the number of names is damage and must not cost memory.
  static constexpr std::size_t kMostUnnamed = std::size_t{1} << 20;

  bool reserve(KeyId id);

  std::vector<KeyPath> paths_;  // without names: not defined yet
  std::size_t named_ = 0;       // defined
  std::vector<Damage>& damage_;
};

}  // namespace ranklog
