#include "process_facts.hpp"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <climits>
#include <ctime>
#include <fstream>
#include <iterator>
#include <random>

#include "ranklog/schema/libraries.hpp"
#include "ranklog/schema/time.hpp"
#include "secrets.hpp"

namespace ranklog::writer {
namespace {

std::string read_whole(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

// Field 22 of /proc/self/stat. The second field, the program's name, may hold spaces and brackets.
std::uint64_t own_start_ticks() {
  const std::string stat = read_whole("/proc/self/stat");
  std::size_t position = stat.rfind(')');
  constexpr int kFieldsAfterName = 20;  // from the name to the space before field 22
  for (int field = 0; field < kFieldsAfterName && position != std::string::npos; ++field) {
    position = stat.find(' ', position + 1);
  }
  std::uint64_t ticks = 0;
  if (position != std::string::npos) {
    std::from_chars(stat.data() + position + 1, stat.data() + stat.size(), ticks);
  }
  return ticks;
}

std::vector<std::string> own_command_line() {
  const std::string text = read_whole("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size();) {
    const auto end = std::min(text.find('\0', start), text.size());
    words.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

void fill_random(unsigned char* bytes, std::size_t size) {
  if (getrandom(bytes, size, 0) == static_cast<ssize_t>(size)) return;
  std::random_device device;
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(device());
}

}  // namespace

void describe_process(Identity& identity) {
  identity.host = host_name();
  identity.pid = getpid();
  identity.pid_start_ticks = own_start_ticks();
  auto words = own_command_line();
  if (!words.empty()) {
    identity.program = words.front();
    words.erase(words.begin());
  }
  identity.arguments = mask_arguments(std::move(words));
  std::error_code ignored;
  const auto git = read_git_facts(std::filesystem::current_path(ignored));
  identity.git_commit = git.commit;
  identity.git_remote = git.remote;
  identity.libraries = library_versions_json();
  identity.host_facts = host_facts_json();
}

std::string random_hex(std::size_t bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::vector<unsigned char> random(bytes);
  fill_random(random.data(), random.size());
  std::string hex;
  for (const auto byte : random) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string random_run_id() {
  constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::array<unsigned char, 8> random{};
  fill_random(random.data(), random.size());
  std::string id;
  for (const auto byte : random) id += kCharacters[byte % kCharacters.size()];
  return id;
}

std::int64_t process_start_ns() {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  const auto ticks = static_cast<std::int64_t>(own_start_ticks());
  const std::int64_t ticks_per_second = ::sysconf(_SC_CLK_TCK);
  timespec since_boot{};
  if (ticks == 0 || ticks_per_second <= 0 || ::clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) return 0;
  const std::int64_t start_ns = ticks * (kNsPerSecond / ticks_per_second);
  return unix_time_ns() - (since_boot.tv_sec * kNsPerSecond + since_boot.tv_nsec - start_ns);
}

}  // namespace ranklog::writer
