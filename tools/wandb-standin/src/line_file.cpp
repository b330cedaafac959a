#include "line_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "disk.hpp"
#include "ranklog/schema/error.hpp"

namespace ranklog::standin {

LineFile::LineFile(std::filesystem::path path, std::set<std::uint64_t> holes)
    : path_(std::move(path)), holes_(std::move(holes)) {
  std::ifstream in(path_, std::ios::binary);
  std::string line;
  while (std::getline(in, line)) lines_.push_back(line);
  on_disk_ = lines_.size();
}

LineFile::Placed LineFile::put(std::uint64_t number, std::string line) {
  if (!line.empty() && line.back() == '\n') line.pop_back();
  std::replace(line.begin(), line.end(), '\n', ' ');
  if (number >= count()) {
    const bool gap = number > count();
    for (std::uint64_t hole = count(); hole < number; ++hole) {
      holes_.insert(hole);
      lines_.emplace_back();
    }
    lines_.push_back(std::move(line));
    return gap ? Placed::kAfterGap : Placed::kAppended;
  }
  const bool was_hole = holes_.erase(number) > 0;
  if (!was_hole && lines_[number] == line) return Placed::kSame;
  lines_[number] = std::move(line);
  rewrite_ = rewrite_ || number < on_disk_;
  return was_hole ? Placed::kFilledHole : Placed::kReplaced;
}

void LineFile::flush() {
  if (rewrite_) {
    rewrite_disk();
  } else if (on_disk_ < count()) {
    append_to_disk();
  }
  on_disk_ = count();
  rewrite_ = false;
}

void LineFile::append_to_disk() {
  make_folder(path_.parent_path());
  std::ofstream out(path_, std::ios::binary | std::ios::app);
  for (std::uint64_t i = on_disk_; i < count(); ++i) out << lines_[i] << '\n';
  out.flush();
  if (!out) {
    rewrite_ = true;  // half a line may be there now
    throw Error(ErrorCode::kIo, "cannot write " + path_.string() + ": " + errno_text(errno));
  }
}

void LineFile::rewrite_disk() {
  std::string text;
  for (const std::string& line : lines_) text += line + '\n';
  write_text(path_, text);
}

}  // namespace ranklog::standin
