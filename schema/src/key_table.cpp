#include "key_table.hpp"

namespace ranklog {
namespace {

KeyPath lost_name(KeyId id) {
  return KeyPath::flat("key " + std::to_string(id) + " (name lost)");
}

}  // namespace

bool KeyTable::reserve(KeyId id) {
  if (id < paths_.size()) return true;
  if (id > named_ + kMostUnnamed) return false;
  paths_.resize(std::size_t{id} + 1);
  return true;
}

void KeyTable::define(KeyId id, KeyPath path) {
  const std::string place = "key " + std::to_string(id);
  if (!reserve(id)) {
    damage_.push_back({place, "its number is out of range"});
  } else if (paths_[id].names.empty()) {
    paths_[id] = std::move(path);
    ++named_;
  } else if (paths_[id] != path) {
    damage_.push_back({place, "it has two names: " + paths_[id].display() + " and " + path.display()});
  }
}

bool KeyTable::require(KeyId id) {
  if (!reserve(id)) return false;
  if (paths_[id].names.empty()) {
    damage_.push_back({"key " + std::to_string(id), "its name is missing"});
    paths_[id] = lost_name(id);
  }
  return true;
}

std::vector<KeyPath> KeyTable::take() {
  // Ids that nothing uses and nothing names: a key whose record and rows were both lost.
  for (std::size_t id = 0; id < paths_.size(); ++id) {
    if (paths_[id].names.empty()) paths_[id] = lost_name(static_cast<KeyId>(id));
  }
  return std::move(paths_);
}

}  // namespace ranklog
