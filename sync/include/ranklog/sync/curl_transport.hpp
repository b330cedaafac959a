#pragma once
// HTTP by libcurl: one thread drives all exchanges over one pool of connections.

#include <memory>
#include <string>

#include "ranklog/sync/stop.hpp"
#include "ranklog/sync/transport.hpp"

namespace ranklog::sync {

struct CurlOptions {
  bool verify_tls = true;
  std::string ca_file;  // empty: the system's certificates
  std::string user_agent;
};

// Proxies are those of the environment (http_proxy, https_proxy, no_proxy), as libcurl reads them.
class CurlTransport final : public Transport {
 public:
  // `stop` must outlive the transport. Throws Error (kIo) if libcurl cannot be set up.
  CurlTransport(CurlOptions options, const StopFlag& stop);
  ~CurlTransport() override;  // no call may be running

  [[nodiscard]] HttpResponse perform(const HttpRequest& request) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ranklog::sync
