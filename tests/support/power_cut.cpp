#include "power_cut.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <set>

#include "temp_dir.hpp"

namespace ranklog::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSector = 512;

std::atomic<PowerCut*> disk{nullptr};

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string path_of(int fd) {
  std::array<char, 64> link{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink(link.data(), path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

bool is_in_folder(const std::string& name, const std::string& folder) {
  return fs::path(name).parent_path() == fs::path(folder);
}

bool coin(std::mt19937& random) {
  return random() % 2 == 0;
}

// A file that grew may have grown in part; cutting one is a single change of its inode.
std::size_t length_after_cut(std::size_t before, std::size_t now, std::mt19937& random) {
  if (now <= before || random() % 3 != 0) return coin(random) ? before : now;
  return before + random() % (now - before + 1);
}

}  // namespace

PowerCut::PowerCut(fs::path folder) : folder_(std::move(folder)) {
  disk = this;
}

PowerCut::~PowerCut() {
  disk = nullptr;
}

std::string PowerCut::name_of(const std::string& path) const {
  if (path == folder_) return ".";
  if (!path.starts_with(folder_ + "/")) return {};
  return path.substr(folder_.size() + 1);
}

void PowerCut::created(const std::string& name) {
  if (now_.count(name) > 0) return;
  auto file = std::make_shared<File>();
  now_[name] = file;
  changes_.push_back({{}, name, file});
}

void PowerCut::removing(const std::string& name) {
  const auto found = now_.find(name);
  if (found != now_.end()) found->second->at_removal = read_file(fs::path(folder_) / name);
}

void PowerCut::removed(const std::string& name) {
  const auto found = now_.find(name);
  if (found == now_.end()) return;
  changes_.push_back({name, {}, found->second});
  now_.erase(found);
}

void PowerCut::renamed(const std::string& from, const std::string& to) {
  const auto found = now_.find(from);
  if (found == now_.end()) return;
  auto file = found->second;
  now_.erase(found);
  now_[to] = file;
  changes_.push_back({from, to, file});
}

void PowerCut::linked(const std::string& from, const std::string& to) {
  const auto found = now_.find(from);
  if (found == now_.end()) return;
  now_[to] = found->second;
  changes_.push_back({{}, to, found->second});
}

void PowerCut::syncing(const std::string& name) {
  const auto found = now_.find(name);
  if (found != now_.end()) found->second->durable = read_file(fs::path(folder_) / name);
}

void PowerCut::synced_folder(const std::string& name) {
  const std::string folder = name == "." ? std::string() : name;
  std::erase_if(durable_, [&](const auto& entry) { return is_in_folder(entry.first, folder); });
  for (const auto& [file_name, file] : now_) {
    if (is_in_folder(file_name, folder)) durable_[file_name] = file;
  }
  std::erase_if(changes_, [&](const Change& change) {
    return is_in_folder(change.added.empty() ? change.removed : change.added, folder);
  });
}

PowerCut::Names PowerCut::names_after_cut(std::mt19937& random) const {
  Names names = durable_;
  std::set<std::string> lost;  // nothing later of these names is there either
  for (const Change& change : changes_) {
    const bool blocked = lost.count(change.removed) > 0 || lost.count(change.added) > 0;
    if (blocked || coin(random)) {
      if (!change.removed.empty()) lost.insert(change.removed);
      if (!change.added.empty()) lost.insert(change.added);
      continue;
    }
    if (!change.removed.empty()) names.erase(change.removed);
    if (!change.added.empty()) names[change.added] = change.file;
  }
  return names;
}

std::string PowerCut::current(const File& file) const {
  for (const auto& [name, at] : now_) {
    if (at.get() == &file) return read_file(fs::path(folder_) / name);
  }
  return file.at_removal;
}

// What was never written is zero; where a file that was cut has its old length, it has what stood there.
std::string PowerCut::torn(const std::string& before, const std::string& now, std::mt19937& random) {
  std::string bytes = before;
  bytes.resize(length_after_cut(before.size(), now.size(), random), '\0');
  const auto of_ten = random() % 11;  // new sectors
  for (std::size_t at = 0; at < bytes.size() && at < now.size(); at += kSector) {
    if (random() % 10 >= of_ten) continue;
    now.copy(bytes.data() + at, std::min({kSector, now.size() - at, bytes.size() - at}), at);
  }
  return bytes;
}

void PowerCut::take_picture(const fs::path& to, std::mt19937& random) {
  const std::lock_guard lock(mutex_);
  fs::create_directories(to);
  for (const auto& [name, file] : names_after_cut(random)) {
    fs::create_directories((to / name).parent_path());
    write_file(to / name, torn(file->durable, current(*file), random));
  }
}

}  // namespace ranklog::test

// ---- What is called instead of the C library ----

using ranklog::test::PowerCut;

namespace {

// Runs a call that may change what `path` names, and tells the disk of it if it succeeds.
template <class Call, class Tell>
int observe(const std::string& path, Call call, Tell tell) {
  PowerCut* const cut = ranklog::test::disk;
  const std::string name = cut != nullptr ? cut->name_of(path) : std::string();
  if (name.empty()) return call();
  const std::lock_guard lock(cut->mutex());
  return tell(*cut, name, call);
}

int sync_observed(int fd, int (*real)(int)) {
  PowerCut* const cut = ranklog::test::disk;
  if (cut == nullptr) return real(fd);
  const std::string path = ranklog::test::path_of(fd);
  const std::string name = cut->name_of(path);
  if (name.empty()) return real(fd);
  const bool is_folder = std::filesystem::is_directory(path);
  const std::lock_guard lock(cut->mutex());
  if (!is_folder) cut->syncing(name);  // what comes while the disk is at work is not promised
  const int result = real(fd);
  if (result == 0 && is_folder) cut->synced_folder(name);
  return result;
}

template <class Remove>
int remove_observed(const char* path, Remove* real) {
  return observe(
      path, [&] { return real(path); },
      [](PowerCut& cut, const std::string& name, auto call) {
        cut.removing(name);
        const int result = call();
        if (result == 0) cut.removed(name);
        return result;
      });
}

}  // namespace

extern "C" {

int fsync(int fd) {
  static auto* const real = ranklog::test::next<int(int)>("fsync");
  return sync_observed(fd, real);
}

int fdatasync(int fd) {
  static auto* const real = ranklog::test::next<int(int)>("fdatasync");
  return sync_observed(fd, real);
}

int unlink(const char* path) noexcept {
  static auto* const real = ranklog::test::next<int(const char*)>("unlink");
  return remove_observed(path, real);
}

int remove(const char* path) noexcept {
  static auto* const real = ranklog::test::next<int(const char*)>("remove");
  return remove_observed(path, real);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = ranklog::test::next<int(const char*, const char*)>("rename");
  return observe(
      from, [&] { return real(from, to); },
      [&](PowerCut& cut, const std::string& name, auto call) {
        const int result = call();
        if (result == 0) cut.renamed(name, cut.name_of(to));
        return result;
      });
}

int link(const char* from, const char* to) noexcept {
  static auto* const real = ranklog::test::next<int(const char*, const char*)>("link");
  return observe(
      from, [&] { return real(from, to); },
      [&](PowerCut& cut, const std::string& name, auto call) {
        const int result = call();
        if (result == 0) cut.linked(name, cut.name_of(to));
        return result;
      });
}

int open(const char* path, int flags, ...) {
  static auto* const real = ranklog::test::next<int(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & O_CREAT) == 0) return real(path, flags, mode);
  return observe(
      path, [&] { return real(path, flags, mode); },
      [](PowerCut& cut, const std::string& name, auto call) {
        const int result = call();
        if (result >= 0) cut.created(name);
        return result;
      });
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open(path, flags, mode);
}

}  // extern "C"
