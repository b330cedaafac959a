#pragma once
// Keys and their numbers in one file, in order of first use.
//
// Threads: any. A key that is known is found without a lock: entries never move and never go, and a table
// that has become too small is replaced, not changed.

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ranklog/schema/key_path.hpp"
#include "ranklog/schema/row_group.hpp"

namespace ranklog::writer {

struct KnownKey {
  std::string name;
  KeyId id = 0;
};

class KeyTable {
 public:
  // `define` is called for each new key, in order, before anyone can find it.
  using Define = std::function<void(KeyId, const KeyPath&)>;
  explicit KeyTable(Define define);

  // By the one name of a flat key. Empty for a reserved name.
  [[nodiscard]] const KnownKey* intern(std::string_view name) {
    const KnownKey* known = find(name);
    return known != nullptr ? known : add(name);
  }
  // Empty for a reserved name.
  [[nodiscard]] std::optional<KeyId> intern(const KeyPath& path);

  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  // From that id on.
  [[nodiscard]] std::vector<KeyPath> paths_from(std::size_t id) const;

 private:
  struct Table {
    explicit Table(std::size_t size) : mask(size - 1), slots(new std::atomic<const KnownKey*>[size]()) {}
    std::size_t mask;
    std::unique_ptr<std::atomic<const KnownKey*>[]> slots;
  };

  [[nodiscard]] const KnownKey* find(std::string_view name) const noexcept;
  const KnownKey* add(std::string_view name);
  KeyId append(KeyPath path);
  static void insert(Table& table, const KnownKey& key) noexcept;

  const Define define_;
  std::atomic<Table*> table_;
  std::atomic<std::size_t> size_{0};

  mutable std::mutex mutex_;                    // guards everything below
  std::vector<std::unique_ptr<Table>> tables_;  // the last is in use; callers may still look at the others
  std::deque<KnownKey> flat_;
  std::unordered_map<std::string, KeyId> nested_;  // by display form
  std::vector<KeyPath> paths_;
};

}  // namespace ranklog::writer
