#pragma once
// c10d's store as a KeyStore, each of whose calls ends.

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>

#include "bounded_caller.hpp"
#include "key_store.hpp"
#include "ranklog/schema/error.hpp"
#include "roster.hpp"

namespace ranklog {

// Every failure is an Error (kTimeout) that names the server: it is gone, or gives no answer (c10d itself
// waits for one without a limit).
class C10dKeyStore : public KeyStore {
 public:
  using StorePtr = c10::intrusive_ptr<c10d::Store>;

  // server: who serves the store, as the subject of a sentence. limit: for each call.
  C10dKeyStore(StorePtr store, std::string server, std::chrono::milliseconds limit)
      : store_(std::move(store)), server_(std::move(server)), limit_(limit) {}

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  void remove(const std::string& key) override;
  void give_up() override { caller_.give_up(); }

  // For the farewell of a job that is over.
  void set_limit(std::chrono::milliseconds limit) { limit_ = limit; }

 private:
  // `call` owns whatever it uses.
  template <typename Call>
  auto ask(Call call) -> decltype(call());

  StorePtr store_;
  std::string server_;
  std::chrono::milliseconds limit_;
  BoundedCaller caller_;
};

}  // namespace ranklog
