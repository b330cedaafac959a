#pragma once
// Keys and their numbers in one file, in order of first use.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ranklog/schema/key_path.hpp"
#include "ranklog/schema/row_group.hpp"

namespace ranklog::writer {

class KeyTable {
 public:
  // Without allocation for a name that is known. Empty for a reserved name.
  [[nodiscard]] std::optional<KeyId> intern(std::string_view flat_name);
  [[nodiscard]] std::optional<KeyId> intern(const KeyPath& path);
  [[nodiscard]] const std::vector<KeyPath>& paths() const noexcept { return paths_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept {
      return std::hash<std::string_view>{}(name);
    }
  };
  using Index = std::unordered_map<std::string, KeyId, Hash, std::equal_to<>>;

  KeyId add(Index& index, std::string name, KeyPath path);

  Index flat_;    // by the one name
  Index nested_;  // by display form
  std::vector<KeyPath> paths_;
};

}  // namespace ranklog::writer
