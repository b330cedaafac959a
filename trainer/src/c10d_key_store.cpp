#include "c10d_key_store.hpp"

#include <future>

namespace ranklog {

template <typename Call>
auto C10dKeyStore::ask(Call call) -> decltype(call()) {
  const auto task = std::make_shared<std::packaged_task<decltype(call())()>>(std::move(call));
  auto result = task->get_future();
  if (!caller_.call([task] { (*task)(); }, limit_)) {
    throw Error(ErrorCode::kTimeout,
                server_ + " gives no answer within " + name_duration(limit_) + " (stopped, or cut off)");
  }
  try {
    return result.get();
  } catch (const std::exception&) {
    throw Error(ErrorCode::kTimeout, server_ + " is gone");
  }
}

void C10dKeyStore::set(const std::string& key, const std::string& value) {
  ask([store = store_, key, bytes = std::vector<std::uint8_t>(value.begin(), value.end())] {
    store->set(key, bytes);
  });
}

std::optional<std::string> C10dKeyStore::get(const std::string& key) {
  return ask([store = store_, key]() -> std::optional<std::string> {
    if (!store->check({key})) return std::nullopt;  // get() itself would wait for the key
    const std::vector<std::uint8_t> value = store->get(key);
    return std::string(value.begin(), value.end());
  });
}

std::int64_t C10dKeyStore::add(const std::string& key, std::int64_t amount) {
  return ask([store = store_, key, amount] { return store->add(key, amount); });
}

void C10dKeyStore::remove(const std::string& key) {
  ask([store = store_, key] { store->deleteKey(key); });
}

}  // namespace ranklog
