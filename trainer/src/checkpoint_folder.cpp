#include "ranklog/trainer/checkpoint_folder.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <tuple>

#include "checkpoint_manifest.hpp"
#include "durable_file.hpp"

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
    if (auto entry = parse_entry(item.path())) entries.push_back(std::move(*entry));
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

// Also the folders above it: the experiment's may be new.
void make_folder(const fs::path& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) {
    throw Error(ErrorCode::kIo, "cannot make the folder '" + folder.string() + "': " + problem.message());
  }
}

fs::path make_step_folder(const fs::path& checkpoints, std::int64_t step) {
  make_folder(checkpoints);
  for (int number = 0;; ++number) {
    const fs::path folder = checkpoints / folder_name(step, number);
    std::error_code problem;
    if (fs::create_directory(folder, problem)) return folder;
    if (problem) {
      throw Error(ErrorCode::kIo, "cannot make the folder '" + folder.string() + "': " + problem.message());
    }
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
  fill([&](const void* data, std::size_t bytes) {
    file.write(data, bytes);
    digest.update(data, bytes);
  });
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

std::vector<std::string> retain_newest_checkpoints(const fs::path& checkpoints, int keep) {
  std::vector<Entry> published = list_newest_first(checkpoints);
  std::erase_if(published, [](const Entry& entry) { return !is_published(entry); });
  std::vector<std::string> removed;
  while (published.size() > static_cast<std::size_t>(std::max(keep, 1))) {
    const fs::path folder = published.back().folder;
    published.pop_back();
    std::error_code problem;
    fs::remove(folder / kManifestName, problem);
    if (problem) continue;  // still whole; tried again next time
    fs::remove_all(folder, problem);
    removed.push_back(folder.filename().string());
  }
  return removed;
}

}  // namespace ranklog
