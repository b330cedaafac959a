#pragma once
// PUTs to the addresses that the server gives out for files and texts.

#include <functional>
#include <string>

#include "graphql.hpp"
#include "ranklog/sync/http_client.hpp"
#include "wandb_api.hpp"

namespace ranklog::sync {

class Storage {
 public:
  // The references must outlive it.
  Storage(HttpClient& http, const ServerAccess& access) : http_(http), access_(access) {}

  // Sends `body` (what a request holds besides its address: text or file, hooks) to `where`; if that address
  // has expired, once more to the one that `renew` asks for. Nothing is sent where the server has the bytes
  // already. Credentials go along only to the server's own address, and only if it asks for them. Throws what
  // HttpClient::send() throws, and Error (kServer) for a refusal.
  void put(const UploadTarget& where, const HttpRequest& body,
           const std::function<UploadTarget()>& renew) const;

 private:
  [[nodiscard]] HttpResponse send(const UploadTarget& where, const HttpRequest& body,
                                  const std::string& what) const;

  HttpClient& http_;
  const ServerAccess& access_;
};

}  // namespace ranklog::sync
