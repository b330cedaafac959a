#include "ranklog/trainer/checkpoint_folder.hpp"

#include <algorithm>
#include <charconv>
#include <exception>
#include <fstream>
#include <iterator>
#include <tuple>

#include "checkpoint_manifest.hpp"
#include "durable_file.hpp"
#include "ranklog/schema/file_copy.hpp"

namespace ranklog {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";

std::string folder_name(std::int64_t step, int number) {
  std::string digits = std::to_string(step);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return std::string(kPrefix) + digits + (number == 0 ? "" : "." + std::to_string(number));
}

// A folder of a checkpoint, published or not, by the name alone.
struct Entry {
  std::int64_t step = 0;
  int number = 0;
  fs::path folder;
};

std::optional<Entry> parse_entry(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  Entry entry{0, 0, folder};
  const char* end = name.data() + name.size();
  auto parsed = std::from_chars(name.data() + kPrefix.size(), end, entry.step);
  if (parsed.ec == std::errc{} && parsed.ptr != end && *parsed.ptr == '.') {
    parsed = std::from_chars(parsed.ptr + 1, end, entry.number);
  }
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return entry;
}

std::vector<Entry> list_newest_first(const fs::path& checkpoints) {
  std::vector<Entry> entries;
  std::error_code problem;
  for (const fs::directory_entry& item : fs::directory_iterator(checkpoints, problem)) {
    auto entry = parse_entry(item.path());
    if (entry && item.is_directory(problem)) entries.push_back(std::move(*entry));
  }
  if (problem && problem != std::errc::no_such_file_or_directory) {
    throw Error(ErrorCode::kIo, "cannot list '" + checkpoints.string() + "': " + problem.message());
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.step, a.number) > std::tie(b.step, b.number);
  });
  return entries;
}

bool is_published(const Entry& entry) {
  return fs::exists(entry.folder / kManifestName);
}

[[noreturn]] void fail_to_make(const fs::path& folder, const std::error_code& problem) {
  throw Error(ErrorCode::kIo, "cannot make the folder '" + folder.string() + "': " + problem.message());
}

// Also the folders above it, as the experiment's may be new; each is durable when its parent is synced.
void make_folder(const fs::path& folder) {
  std::error_code problem;
  if (fs::is_directory(folder, problem)) return;
  if (folder.has_parent_path()) make_folder(folder.parent_path());
  fs::create_directory(folder, problem);
  if (problem) fail_to_make(folder, problem);
  sync_folder(folder.has_parent_path() ? folder.parent_path() : fs::path("."));
}

fs::path make_step_folder(const fs::path& checkpoints, std::int64_t step) {
  make_folder(checkpoints);
  for (int number = 0;; ++number) {
    const fs::path folder = checkpoints / folder_name(step, number);
    std::error_code problem;
    if (fs::create_directory(folder, problem)) return folder;
    if (problem) fail_to_make(folder, problem);
  }
}

std::string describe_damage(const CheckpointFile& expected, const FileDigests& found) {
  if (found.size != expected.digests.size) {
    return "has " + std::to_string(found.size) + " bytes, its manifest says " +
           std::to_string(expected.digests.size);
  }
  return "does not have the SHA-256 that its manifest says";
}

}  // namespace

CheckpointWriter::CheckpointWriter(const fs::path& checkpoints, std::int64_t step)
    : folder_(make_step_folder(checkpoints, step)) {}

CheckpointWriter::~CheckpointWriter() {
  if (published_) return;
  std::error_code ignored;  // without a manifest it is no checkpoint, and is removed at the next start
  fs::remove_all(folder_, ignored);
}

void CheckpointWriter::write_file(const std::string& name, const std::function<void(const Sink&)>& fill) {
  DurableFile file(folder_ / name);
  DigestStream digest;
  // LibTorch's archive writer goes on after an exception and then fails for a reason of its own: the first
  // counts.
  std::exception_ptr failure;
  const auto take = [&](const void* data, std::size_t bytes) {
    if (failure) return;
    try {
      file.write(data, bytes);
      digest.update(data, bytes);
    } catch (...) {
      failure = std::current_exception();
    }
  };
  try {
    fill(take);
  } catch (...) {
    if (!failure) throw;
  }
  if (failure) std::rethrow_exception(failure);
  file.commit();
  files_.push_back({name, digest.finish()});
}

Checkpoint CheckpointWriter::publish(CheckpointManifest manifest) {
  manifest.files = files_;
  const std::string text = write_manifest(manifest);
  sync_folder(folder_.parent_path());
  DurableFile file(folder_ / kManifestName);
  file.write(text.data(), text.size());
  file.commit();
  published_ = true;
  return {folder_, std::move(manifest)};
}

Checkpoint open_checkpoint(const fs::path& folder) {
  std::ifstream in(folder / kManifestName, std::ios::binary);
  if (!in) throw Error(ErrorCode::kNotFound, "'" + folder.string() + "' holds no published checkpoint");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  Checkpoint checkpoint{folder, {}};
  try {
    checkpoint.manifest = parse_manifest(text);
  } catch (const Error& e) {
    throw Error(e.code(), "'" + (folder / kManifestName).string() + "': " + e.what());
  }
  for (const CheckpointFile& file : checkpoint.manifest.files) {
    const FileDigests found = digest_file(folder / file.name);
    if (found.size == file.digests.size && found.sha256 == file.digests.sha256) continue;
    throw Error(ErrorCode::kDamaged,
                "'" + (folder / file.name).string() + "' " + describe_damage(file, found));
  }
  return checkpoint;
}

NewestCheckpoint find_newest_checkpoint(const fs::path& checkpoints) {
  NewestCheckpoint newest;
  for (const Entry& entry : list_newest_first(checkpoints)) {
    if (!is_published(entry)) continue;
    try {
      newest.found = open_checkpoint(entry.folder);
      return newest;
    } catch (const Error& e) {
      newest.skipped.emplace_back(e.what());
      // What another version wrote, or what cannot be read just now, may be whole.
      if (e.code() == ErrorCode::kDamaged || e.code() == ErrorCode::kNotFound) {
        newest.damaged.push_back(entry.folder);
      }
    }
  }
  return newest;
}

void remove_unpublished_checkpoints(const fs::path& checkpoints) {
  for (const Entry& entry : list_newest_first(checkpoints)) {
    if (is_published(entry)) continue;
    std::error_code ignored;  // it is no checkpoint either way
    fs::remove_all(entry.folder, ignored);
  }
}

std::vector<std::string> list_published_checkpoints(const fs::path& checkpoints) {
  std::vector<std::string> names;
  for (const Entry& entry : list_newest_first(checkpoints)) {
    if (is_published(entry)) names.push_back(entry.folder.filename().string());
  }
  return names;
}

void retire_damaged_checkpoint(const fs::path& folder) noexcept {
  const std::string name = "damaged-" + folder.filename().string();
  std::error_code problem;
  fs::path retired = folder.parent_path() / name;
  for (int number = 2; fs::exists(retired, problem); ++number) {
    retired = folder.parent_path() / (name + "." + std::to_string(number));
  }
  fs::rename(folder, retired, problem);  // if it stays, it is skipped once more
}

bool remove_checkpoint(const fs::path& folder) noexcept {
  std::error_code problem;
  fs::remove(folder / kManifestName, problem);
  if (problem) return false;
  fs::remove_all(folder, problem);  // a remainder is removed at the next resume
  return true;
}

CheckpointRetention::CheckpointRetention(fs::path checkpoints, int keep, const fs::path& base)
    : checkpoints_(std::move(checkpoints)), keep_(static_cast<std::size_t>(std::max(keep, 0))) {
  if (!base.empty()) whole_.insert(base.filename().string());
}

void CheckpointRetention::published(const Checkpoint& checkpoint) {
  newest_ = checkpoint.folder.filename().string();
  whole_.insert(newest_);
}

bool CheckpointRetention::is_whole(const std::string& name) {
  if (whole_.contains(name)) return true;
  try {
    (void)open_checkpoint(checkpoints_ / name);
  } catch (const Error&) {
    return false;
  }
  whole_.insert(name);
  return true;
}

std::vector<fs::path> CheckpointRetention::surplus() {
  std::vector<fs::path> surplus;
  if (keep_ == 0 || newest_.empty()) return surplus;
  std::vector<std::string> names = list_published_checkpoints(checkpoints_);
  names.erase(names.begin(), std::find(names.begin(), names.end(), newest_));
  // Those that are known come first: they leave room for the others, or none.
  const auto is_known = [this](const std::string& name) { return whole_.contains(name); };
  const auto known = static_cast<std::size_t>(std::count_if(names.begin(), names.end(), is_known));
  std::size_t room_for_known = std::min(known, keep_);
  std::size_t room_for_others = keep_ - room_for_known;
  for (const std::string& name : names) {
    std::size_t& room = is_known(name) ? room_for_known : room_for_others;
    if (room == 0) {
      surplus.push_back(checkpoints_ / name);
    } else if (is_whole(name)) {
      --room;
    }
  }
  std::reverse(surplus.begin(), surplus.end());
  return surplus;
}

}  // namespace ranklog
