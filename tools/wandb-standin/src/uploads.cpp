#include "uploads.hpp"

#include "text.hpp"

namespace ranklog::standin {
namespace {

constexpr std::size_t kTokenLength = 32;

}  // namespace

std::string Uploads::grant(Ticket ticket) {
  const std::string token = random_token(kTokenLength);
  tickets_.emplace(token, std::move(ticket));
  return "/upload/" + token;
}

std::string Uploads::grant_read(const std::filesystem::path& file) {
  const auto known = readers_.find(file.string());
  if (known != readers_.end()) return known->second;
  Ticket ticket;
  ticket.label = "read " + file.filename().string();
  ticket.target = file;
  return readers_[file.string()] = grant(std::move(ticket));
}

const Ticket& Uploads::find(const std::string& token) const {
  const auto found = tickets_.find(token);
  if (found == tickets_.end()) throw ApiError(403, "this upload address is unknown or has expired");
  return found->second;
}

Json upload_headers(const Ticket& ticket) {
  Json headers = Json::array();
  if (!ticket.content_md5.empty()) headers.push_back("Content-MD5:" + ticket.content_md5);
  if (!ticket.content_type.empty()) headers.push_back("Content-Type:" + ticket.content_type);
  return headers;
}

}  // namespace ranklog::standin
