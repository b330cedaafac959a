#include "curl_transfer.hpp"

#include <algorithm>
#include <cctype>
#include <new>

namespace ranklog::sync {
namespace {

// What a reply may weigh. Upserts answer with the whole config; nothing sensible is larger.
constexpr std::size_t kMaxReplyBytes = std::size_t{64} << 20;
constexpr long kConnectTimeoutMs = 15'000;

CurlList make_headers(const HttpRequest& request) {
  CurlList list;
  const auto add = [&](const std::string& line) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    (void)list.release();
    list.reset(longer);
  };
  // Waiting for "100 Continue" costs a second on servers that do not know it.
  add("Expect:");
  // libcurl would call JSON a form.
  if (request.method == "POST") add("Content-Type: application/json");
  // An empty value needs ';' in place of ':' to be sent at all.
  for (const auto& [name, value] : request.headers) add(value.empty() ? name + ";" : name + ": " + value);
  return list;
}

}  // namespace

CurlTransfer::CurlTransfer(const HttpRequest& request, const CurlOptions& options)
    : request_(request), source_(request), handle_(curl_easy_init()), headers_(make_headers(request)) {
  if (!handle_) throw std::bad_alloc();
  set_connection_options(options);
  set_callbacks();
  set_timeouts();
}

bool CurlTransfer::prepare() {
  if (!source_.open()) {
    response_.delivery = Delivery::kSourceChanged;
    response_.fault = source_.fault();
    return false;
  }
  set_method();
  return true;
}

void CurlTransfer::set_connection_options(const CurlOptions& options) {
  CURL* curl = handle_.get();
  curl_easy_setopt(curl, CURLOPT_URL, request_.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, options.user_agent.c_str());
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, options.verify_tls ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, options.verify_tls ? 2L : 0L);
  if (!options.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca_file.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(curl, CURLOPT_PRIVATE, this);
}

void CurlTransfer::set_callbacks() {
  CURL* curl = handle_.get();
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, fault_);
  curl_easy_setopt(curl, CURLOPT_READFUNCTION, &CurlTransfer::on_read);
  curl_easy_setopt(curl, CURLOPT_READDATA, this);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &CurlTransfer::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &CurlTransfer::on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &CurlTransfer::on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  // libcurl sends a request again by itself when a kept connection turns out to be closed, unless it cannot
  // rewind the body: that is how a request that must not be doubled is kept from being doubled.
  if (request_.repeatable) {
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, &CurlTransfer::on_seek);
    curl_easy_setopt(curl, CURLOPT_SEEKDATA, this);
  }
}

void CurlTransfer::set_method() {
  CURL* curl = handle_.get();
  const auto size = static_cast<curl_off_t>(source_.size());
  if (request_.method == "PUT") {
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, size);
  } else if (request_.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, size);
  } else {
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, 512L * 1024);
}

void CurlTransfer::set_timeouts() {
  CURL* curl = handle_.get();
  const long timeout_ms = static_cast<long>(request_.timeout.count());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, std::min(kConnectTimeoutMs, timeout_ms));
  if (request_.file) {
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, std::max(1L, timeout_ms / 1000));
  } else {
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
  }
}

void CurlTransfer::complete(CURLcode code) {
  long status = 0;
  curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
  response_.status = static_cast<int>(status);
  response_.delivery = delivery_of(code);
  if (response_.delivery == Delivery::kSourceChanged) {
    response_.fault = source_.fault();
  } else if (response_.delivery != Delivery::kAnswered) {
    response_.fault = fault_[0] != '\0' ? fault_ : curl_easy_strerror(code);
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  ended_signal_.notify_all();
}

Delivery CurlTransfer::delivery_of(CURLcode code) const {
  if (code == CURLE_OK) return Delivery::kAnswered;
  if (cancelled_) return Delivery::kStopped;
  if (!source_.fault().empty()) return Delivery::kSourceChanged;
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Delivery::kUntrusted;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
      return Delivery::kNotSent;
    default:
      break;
  }
  // Before the connection stood, nothing was sent.
  curl_off_t ready_us = 0;
  curl_easy_getinfo(handle_.get(), CURLINFO_PRETRANSFER_TIME_T, &ready_us);
  return ready_us == 0 ? Delivery::kNotSent : Delivery::kUnclear;
}

bool CurlTransfer::wait_for(std::chrono::milliseconds duration) {
  std::unique_lock lock(mutex_);
  return ended_signal_.wait_for(lock, duration, [&] { return ended_; });
}

std::size_t CurlTransfer::on_read(char* out, std::size_t size, std::size_t count, void* self) {
  auto* transfer = static_cast<CurlTransfer*>(self);
  if (transfer->cancelled_) return CURL_READFUNC_ABORT;
  const auto got = transfer->source_.read(out, size * count);
  if (!got) return CURL_READFUNC_ABORT;
  if (transfer->request_.on_sent) transfer->request_.on_sent(transfer->source_.sent());
  return *got;
}

int CurlTransfer::on_seek(void* self, curl_off_t offset, int origin) {
  auto* transfer = static_cast<CurlTransfer*>(self);
  if (offset != 0 || origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  return transfer->source_.rewind() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

std::size_t CurlTransfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  auto& headers = static_cast<CurlTransfer*>(self)->response_.headers;
  std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) headers.clear();  // an interim reply came before
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  line.remove_prefix(colon + 1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  while (!line.empty() && static_cast<unsigned char>(line.back()) <= ' ') line.remove_suffix(1);
  headers.emplace_back(std::move(name), line);
  return size * count;
}

std::size_t CurlTransfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  std::string& body = static_cast<CurlTransfer*>(self)->response_.body;
  if (body.size() + size * count > kMaxReplyBytes) return 0;
  body.append(data, size * count);
  return size * count;
}

int CurlTransfer::on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<CurlTransfer*>(self)->cancelled_ ? 1 : 0;
}

}  // namespace ranklog::sync
