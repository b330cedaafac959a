#include "disk.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/naming.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

[[noreturn]] void fail(const std::string& doing, const fs::path& path, int error_number) {
  throw Error(ErrorCode::kIo, "cannot " + doing + " " + path.string() + ": " + errno_text(error_number));
}

}  // namespace

void make_folder(const fs::path& path) {
  if (path.empty()) return;  // the parent of a bare file name: the current folder
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail("create the folder", path, error.value());
}

void move_file(const fs::path& from, const fs::path& to) {
  make_folder(to.parent_path());
  std::error_code error;
  fs::rename(from, to, error);
  if (error) fail("create", to, error.value());
}

void write_text(const fs::path& path, std::string_view text) {
  make_folder(path.parent_path());
  const fs::path temporary = path.string() + ".new";
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.flush();
    if (!out) fail("write", temporary, errno);
  }
  move_file(temporary, path);
}

void write_json(const fs::path& path, const Json& json) {
  write_text(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<std::string> read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::optional<Json> read_json(const fs::path& path) {
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) {
    throw Error(ErrorCode::kDamaged, path.string() + " is not JSON; remove it or give another --dir");
  }
  return json;
}

fs::path safe_relative_path(const std::string& name) {
  fs::path path;
  for (const std::string& part : split(name, '/')) {
    if (part.empty() || part == "." || part == "..")
      throw ApiError(400, "invalid file name \"" + name + "\"");
    path /= encode_file_name(part);
  }
  return path;
}

std::vector<std::string> decoded_names_below(const fs::path& folder) {
  std::vector<std::string> names;
  if (!fs::is_directory(folder)) return names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::string name;
    for (const fs::path& part : entry.path().lexically_relative(folder)) {
      name += (name.empty() ? "" : "/") + decode_file_name(part.string());
    }
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ranklog::standin
