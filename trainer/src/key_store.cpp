#include "key_store.hpp"

namespace ranklog {

void MemoryKeyStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
}

std::optional<std::string> MemoryKeyStore::get(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::int64_t MemoryKeyStore::add(const std::string& key, std::int64_t amount) {
  const std::lock_guard lock(mutex_);
  return counters_[key] += amount;
}

void MemoryKeyStore::remove(const std::string& key) {
  const std::lock_guard lock(mutex_);
  values_.erase(key);
  counters_.erase(key);
}

}  // namespace ranklog
