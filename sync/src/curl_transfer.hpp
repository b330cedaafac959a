#pragma once
// One exchange as libcurl sees it: the handle, its options, and what has come back so far.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "body_source.hpp"
#include "curl_handles.hpp"
#include "ranklog/sync/curl_transport.hpp"
#include "ranklog/sync/transport.hpp"

namespace ranklog::sync {

// libcurl keeps pointers into it, so it stays where it is until the exchange has ended.
class CurlTransfer {
 public:
  CurlTransfer(const HttpRequest& request, const CurlOptions& options);
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  // False: the request cannot even begin; response() says why.
  [[nodiscard]] bool prepare();
  [[nodiscard]] CURL* handle() const noexcept { return handle_.get(); }

  void cancel() noexcept { cancelled_ = true; }  // any thread
  void complete(CURLcode code);                  // network thread, after libcurl has let go
  // Caller's thread. True once complete() has run.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds duration);
  [[nodiscard]] HttpResponse take_response() { return std::move(response_); }

 private:
  static std::size_t on_read(char* out, std::size_t size, std::size_t count, void* self);
  static int on_seek(void* self, curl_off_t offset, int origin);
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

  void set_connection_options(const CurlOptions& options);
  void set_callbacks();
  void set_method();
  void set_timeouts();
  [[nodiscard]] Delivery delivery_of(CURLcode code) const;

  const HttpRequest& request_;
  BodySource source_;
  CurlEasy handle_;
  CurlList headers_;
  char fault_[CURL_ERROR_SIZE] = {};
  HttpResponse response_;
  std::atomic<bool> cancelled_{false};

  std::mutex mutex_;
  std::condition_variable ended_signal_;
  bool ended_ = false;  // guarded by mutex_
};

}  // namespace ranklog::sync
