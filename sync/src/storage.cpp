#include "storage.hpp"

#include "ranklog/sync/url.hpp"

namespace ranklog::sync {
namespace {

constexpr int kUnauthorizedStatus = 401;
constexpr int kForbiddenStatus = 403;

std::string origin_of(const std::string& url) {
  const Url parts = parse_url(url, "an upload address");
  return parts.scheme + "://" + parts.netloc;
}

[[noreturn]] void refuse(const std::string& url, const HttpResponse& response, const std::string& what) {
  const std::string said =
      what + ": the storage " + origin_of(url) + " answered " + describe_failure(Endpoint::kUpload, response);
  if (response.status == kUnauthorizedStatus) {
    throw Error(ErrorCode::kServer,
                said + ": it asks for credentials, and upload addresses are to work without",
                "ask who runs the server: its storage, or a proxy before it, is set up wrongly");
  }
  throw Error(ErrorCode::kServer, said,
              "run the same command again, and if it stays so ask who runs the server");
}

}  // namespace

void Storage::put(const UploadTarget& where, const HttpRequest& body,
                  const std::function<UploadTarget()>& renew) const {
  if (where.url.empty()) return;
  const std::string what = "uploading " + where.name;
  HttpResponse response = send(where, body, what);
  std::string url = access_.put(where.url).url;
  if (response.status == kForbiddenStatus) {
    const UploadTarget fresh = renew();
    if (fresh.url.empty()) return;
    response = send(fresh, body, what);
    url = access_.put(fresh.url).url;
  }
  if (!response.ok()) refuse(url, response, what);
}

HttpResponse Storage::send(const UploadTarget& where, const HttpRequest& body,
                           const std::string& what) const {
  HttpRequest request = access_.put(where.url);
  request.headers = where.headers;
  request.body = body.body;
  request.file = body.file;
  request.while_waiting = body.while_waiting;
  request.on_sent = body.on_sent;
  HttpResponse response = http_.send(Endpoint::kUpload, request, what);
  // A store that the server passes through itself stands behind the same login.
  if (response.status == kUnauthorizedStatus && access_.add_key(request)) {
    response = http_.send(Endpoint::kUpload, request, what);
  }
  return response;
}

}  // namespace ranklog::sync
