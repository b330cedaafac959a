#pragma once
// Small texts under keys that all ranks of a job see: what barriers and failure notices are made of.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace ranklog {

class KeyStore {
 public:
  KeyStore() = default;
  KeyStore(const KeyStore&) = delete;
  KeyStore& operator=(const KeyStore&) = delete;
  virtual ~KeyStore() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  [[nodiscard]] virtual std::optional<std::string> get(const std::string& key) = 0;  // empty: no such key
  // Returns the new value. A key that does not exist counts as 0.
  virtual std::int64_t add(const std::string& key, std::int64_t amount) = 0;
  virtual void remove(const std::string& key) = 0;
  // From another thread: a call that waits, and every later one, ends with an Error.
  virtual void give_up() {}
};

// Of one process. Threads: any.
class MemoryKeyStore : public KeyStore {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  void remove(const std::string& key) override;

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;     // guarded by mutex_
  std::map<std::string, std::int64_t> counters_;  // guarded by mutex_
};

}  // namespace ranklog
