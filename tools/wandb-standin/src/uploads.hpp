#pragma once
// Pre-signed addresses: who holds one may PUT or GET what it stands for, and nothing else. They live in
// memory only; after a restart old ones are refused as expired ones are, and clients ask for new ones.

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "api_error.hpp"

namespace ranklog::standin {

struct Stored {
  std::uint64_t size = 0;
  std::string md5_hex;
};

// What an address stands for.
struct Ticket {
  std::string label;             // for the request log: "artifact model: model.pt"
  std::filesystem::path target;  // the file that it is, or will be
  bool writable = false;
  // Signed into the address as S3 does it: a PUT must carry them with these values. May be empty.
  std::string content_md5;
  std::string content_type;
  // Called under the server's mutex when the bytes have come; throws ApiError to refuse them. May be empty.
  std::function<void()> admit;
  // Called under the server's mutex after the bytes are in place. May be empty.
  std::function<void(const Stored&)> stored;
};

class Uploads {
 public:
  // Return the path of the URL: "/upload/<token>".
  std::string grant(Ticket ticket);
  // For reading. The same file gets the same address again.
  std::string grant_read(const std::filesystem::path& file);

  // Throws ApiError(403) for an unknown token.
  [[nodiscard]] const Ticket& find(const std::string& token) const;

 private:
  std::map<std::string, Ticket> tickets_;
  std::map<std::string, std::string> readers_;  // file to token
};

// The headers that a client must send with a PUT to the ticket's address, as W&B lists them ("Name:value").
[[nodiscard]] Json upload_headers(const Ticket& ticket);

}  // namespace ranklog::standin
