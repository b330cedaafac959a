#include "key_table.hpp"

namespace ranklog::writer {

KeyId KeyTable::add(Index& index, std::string name, KeyPath path) {
  const auto id = static_cast<KeyId>(paths_.size());
  paths_.push_back(std::move(path));
  try {
    index.emplace(std::move(name), id);
  } catch (...) {
    paths_.pop_back();
    throw;
  }
  return id;
}

std::optional<KeyId> KeyTable::intern(std::string_view flat_name) {
  const auto found = flat_.find(flat_name);
  if (found != flat_.end()) return found->second;
  if (is_reserved_name(flat_name)) return std::nullopt;
  return add(flat_, std::string(flat_name), KeyPath::flat(flat_name));
}

std::optional<KeyId> KeyTable::intern(const KeyPath& path) {
  if (path.names.size() == 1) return intern(path.names.front());
  if (is_reserved_name(path.names.front())) return std::nullopt;
  std::string display = path.display();
  const auto found = nested_.find(display);
  if (found != nested_.end()) return found->second;
  return add(nested_, std::move(display), path);
}

}  // namespace ranklog::writer
