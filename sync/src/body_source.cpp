#include "body_source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ranklog/schema/error.hpp"

namespace ranklog::sync {

bool BodySource::open() {
  if (!request_.file) return true;
  const FileBody& body = *request_.file;
  file_.reset(std::fopen(body.path.c_str(), "rbe"));
  if (!file_) {
    fault_ = body.path.string() + " cannot be opened: " + errno_text(errno);
    return false;
  }
  std::error_code failed;
  const std::uint64_t size = std::filesystem::file_size(body.path, failed);
  if (failed || size != body.size) {
    fault_ = body.path.string() + " has changed since it was logged: " + std::to_string(size) +
             " bytes instead of " + std::to_string(body.size);
    return false;
  }
  digest_.emplace();
  // An empty file has no last byte to hold back.
  return size > 0 || digest_matches();
}

std::uint64_t BodySource::size() const noexcept {
  return request_.file ? request_.file->size : request_.body.size();
}

std::optional<std::size_t> BodySource::read(char* out, std::size_t limit) {
  const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(limit, size() - position_));
  if (wanted == 0) return 0;
  if (request_.file) return read_file(out, wanted);
  std::memcpy(out, request_.body.data() + position_, wanted);
  position_ += wanted;
  return wanted;
}

std::optional<std::size_t> BodySource::read_file(char* out, std::size_t limit) {
  const std::size_t got = std::fread(out, 1, limit, file_.get());
  if (got == 0) {
    fault_ = request_.file->path.string() + " cannot be read to its end";
    return std::nullopt;
  }
  digest_->update(out, got);
  position_ += got;
  if (position_ == size() && !digest_matches()) return std::nullopt;
  return got;
}

bool BodySource::digest_matches() {
  if (digest_->finish().md5 == request_.file->md5) return true;
  fault_ =
      request_.file->path.string() + " has changed since it was logged: its MD5 is not " + request_.file->md5;
  return false;
}

bool BodySource::rewind() {
  position_ = 0;
  if (!file_) return true;
  digest_.emplace();
  return std::fseek(file_.get(), 0, SEEK_SET) == 0;
}

}  // namespace ranklog::sync
