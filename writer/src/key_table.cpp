#include "key_table.hpp"

#include <functional>

namespace ranklog::writer {
namespace {

constexpr std::size_t kFirstSlots = 256;  // a power of two, as all sizes are

std::size_t hash_of(std::string_view name) noexcept {
  return std::hash<std::string_view>{}(name);
}

}  // namespace

KeyTable::KeyTable(Define define) : define_(std::move(define)) {
  tables_.push_back(std::make_unique<Table>(kFirstSlots));
  table_.store(tables_.back().get(), std::memory_order_release);
}

const KnownKey* KeyTable::find(std::string_view name) const noexcept {
  const Table& table = *table_.load(std::memory_order_acquire);
  for (std::size_t slot = hash_of(name);; ++slot) {
    const KnownKey* key = table.slots[slot & table.mask].load(std::memory_order_acquire);
    if (key == nullptr || key->name == name) return key;
  }
}

void KeyTable::insert(Table& table, const KnownKey& key) noexcept {
  std::size_t slot = hash_of(key.name) & table.mask;
  while (table.slots[slot].load(std::memory_order_relaxed) != nullptr) slot = (slot + 1) & table.mask;
  table.slots[slot].store(&key, std::memory_order_release);
}

const KnownKey* KeyTable::add(std::string_view name) {
  if (is_reserved_name(name)) return nullptr;
  const std::lock_guard lock(mutex_);
  if (const KnownKey* known = find(name)) return known;  // another thread was faster
  if (2 * (flat_.size() + 1) > tables_.back()->mask) {
    auto larger = std::make_unique<Table>(2 * (tables_.back()->mask + 1));
    for (const KnownKey& key : flat_) insert(*larger, key);
    tables_.push_back(std::move(larger));
    table_.store(tables_.back().get(), std::memory_order_release);
  }
  flat_.push_back({std::string(name), 0});
  try {
    flat_.back().id = append(KeyPath::flat(name));
  } catch (...) {
    flat_.pop_back();
    throw;
  }
  insert(*tables_.back(), flat_.back());
  return &flat_.back();
}

std::optional<KeyId> KeyTable::intern(const KeyPath& path) {
  if (path.names.size() == 1) {
    const KnownKey* key = intern(path.names.front());
    return key != nullptr ? std::optional(key->id) : std::nullopt;
  }
  if (is_reserved_name(path.names.front())) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto [key, is_new] = nested_.try_emplace(path.display(), 0);
  if (!is_new) return key->second;
  try {
    key->second = append(path);
  } catch (...) {
    nested_.erase(key);
    throw;
  }
  return key->second;
}

KeyId KeyTable::append(KeyPath path) {
  const auto id = static_cast<KeyId>(paths_.size());
  paths_.push_back(std::move(path));
  try {
    define_(id, paths_.back());
  } catch (...) {
    paths_.pop_back();
    throw;
  }
  size_.store(paths_.size(), std::memory_order_release);
  return id;
}

std::vector<KeyPath> KeyTable::paths_from(std::size_t id) const {
  const std::lock_guard lock(mutex_);
  return {paths_.begin() + static_cast<std::ptrdiff_t>(std::min(id, paths_.size())), paths_.end()};
}

}  // namespace ranklog::writer
