#include "request_log.hpp"

#include <cerrno>

#include "ranklog/schema/error.hpp"

namespace ranklog::standin {

RequestLog::RequestLog(const std::filesystem::path& folder)
    : path_(folder / "requests.jsonl"), out_(path_, std::ios::binary | std::ios::app) {
  if (!out_) throw Error(ErrorCode::kIo, "cannot write " + path_.string() + ": " + errno_text(errno));
}

void RequestLog::add(const Json& entry) {
  out_ << entry.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  out_.flush();
  if (!out_) throw Error(ErrorCode::kIo, "cannot write " + path_.string() + ": " + errno_text(errno));
}

Json loggable_body(const std::string& body) {
  if (body.empty() || body.size() > kMaxLoggedBody) return nullptr;
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_discarded()) return json;
  const bool text = body.find('\0') == std::string::npos;
  return text ? Json(body) : Json(nullptr);
}

}  // namespace ranklog::standin
