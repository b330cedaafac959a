#include "ranklog/sync/curl_transport.hpp"

#include <deque>
#include <mutex>
#include <thread>

#include "curl_transfer.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog::sync {
namespace {

void initialise_curl_once() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK) {
    throw Error(ErrorCode::kIo, std::string("libcurl cannot start: ") + curl_easy_strerror(result));
  }
}

}  // namespace

struct CurlTransport::Impl {
  Impl(CurlOptions curl_options, const StopFlag& stop_flag)
      : options(std::move(curl_options)), stop(stop_flag), multi(curl_multi_init()) {
    if (!multi) throw Error(ErrorCode::kIo, "libcurl cannot start: out of memory");
    network = std::jthread([this](const std::stop_token& token) { drive(token); });
  }
  ~Impl() {
    network.request_stop();
    curl_multi_wakeup(multi.get());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void submit(CurlTransfer& transfer) {
    {
      const std::lock_guard lock(mutex);
      waiting.push_back(&transfer);
    }
    curl_multi_wakeup(multi.get());
  }

  // The network thread.
  void drive(const std::stop_token& token) {
    constexpr int kPollMs = 1'000;
    while (!token.stop_requested()) {
      begin_waiting();
      int running = 0;
      curl_multi_perform(multi.get(), &running);
      finish_ended();
      curl_multi_poll(multi.get(), nullptr, 0, kPollMs, nullptr);
    }
  }

  void begin_waiting() {
    std::deque<CurlTransfer*> taken;
    {
      const std::lock_guard lock(mutex);
      taken.swap(waiting);
    }
    for (CurlTransfer* transfer : taken) {
      if (curl_multi_add_handle(multi.get(), transfer->handle()) != CURLM_OK) {
        transfer->complete(CURLE_FAILED_INIT);
      }
    }
  }

  void finish_ended() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* handle = message->easy_handle;
      void* transfer = nullptr;
      curl_easy_getinfo(handle, CURLINFO_PRIVATE, &transfer);
      curl_multi_remove_handle(multi.get(), handle);
      static_cast<CurlTransfer*>(transfer)->complete(code);
    }
  }

  const CurlOptions options;
  const StopFlag& stop;
  CurlMulti multi;
  std::mutex mutex;
  std::deque<CurlTransfer*> waiting;  // guarded by mutex
  std::jthread network;               // last: it uses all of the above
};

CurlTransport::CurlTransport(CurlOptions options, const StopFlag& stop) {
  initialise_curl_once();
  impl_ = std::make_unique<Impl>(std::move(options), stop);
}

CurlTransport::~CurlTransport() = default;

HttpResponse CurlTransport::perform(const HttpRequest& request) {
  constexpr std::chrono::milliseconds kSlice{200};
  constexpr int kSlicesPerCall = 5;
  CurlTransfer transfer(request, impl_->options);
  if (!transfer.prepare()) return transfer.take_response();
  impl_->submit(transfer);
  for (int slice = 1; !transfer.wait_for(kSlice); ++slice) {
    if (impl_->stop.count() >= (request.finish_when_stopped ? 2 : 1)) {
      transfer.cancel();
      curl_multi_wakeup(impl_->multi.get());
    } else if (request.while_waiting && slice % kSlicesPerCall == 0) {
      request.while_waiting();
    }
  }
  return transfer.take_response();
}

}  // namespace ranklog::sync
