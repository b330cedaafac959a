#include "host_metrics.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

constexpr double kMb = 1024.0 * 1024.0;
constexpr double kGb = 1024.0 * kMb;

double percent(double part, double whole) {
  return whole > 0 ? part / whole * 100 : 0;
}

double per_second(std::uint64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(std::max(::sysconf(_SC_CLK_TCK), 1L));
}

// Counters of a device may begin anew.
double growth(std::uint64_t now, std::uint64_t then) {
  return now >= then ? static_cast<double>(now - then) : static_cast<double>(now);
}

double usable_cpus(const fs::path& root, const CgroupLimits& limits) {
  const std::string cpuinfo = read_small_file(root / "proc/cpuinfo");
  const int allowed = count_allowed_cpus(read_small_file(root / "proc/self/status"));
  double cpus = std::max(count_physical_cores(cpuinfo), 1);
  if (allowed > 0 && allowed < count_processors(cpuinfo)) cpus = allowed;
  return limits.cpus > 0 ? std::min(cpus, limits.cpus) : cpus;
}

fs::path canonical_or_same(const fs::path& path) {
  std::error_code error;
  fs::path canonical = fs::canonical(path, error);
  return error ? path : canonical;
}

}  // namespace

HostMetrics::HostMetrics(HostScope scope, fs::path log_folder, fs::path root)
    : scope_(scope), folder_(std::move(log_folder)), root_(std::move(root)) {
  memory_ = parse_meminfo(read_small_file(root_ / "proc/meminfo")).value_or(MemoryInfo{});
  limits_ = read_cgroup_limits(root_, memory_.total);
  cpus_ = usable_cpus(root_, limits_);
  mount_ =
      find_mount(parse_mountinfo(read_small_file(root_ / "proc/self/mountinfo")), canonical_or_same(folder_));
}

std::optional<std::vector<Metric>> HostMetrics::sample() {
  std::vector<Metric> out;
  add_process(out);
  if (scope_ == HostScope::kProcess) return out;
  add_memory(out);
  add_network(out);
  add_disk_usage(out);
  add_disk_traffic(out);
  return out;
}

double HostMetrics::uptime_s() const {
  const auto text = read_small_file(root_ / "proc/uptime");
  const auto words = split_words(text);
  if (words.empty()) return 0;
  const auto dot = words[0].find('.');
  const auto seconds = parse_unsigned(words[0].substr(0, dot));
  const auto hundredths = dot == std::string_view::npos ? 0 : parse_unsigned(words[0].substr(dot + 1));
  return static_cast<double>(seconds.value_or(0)) + static_cast<double>(hundredths.value_or(0)) / 100;
}

std::uint64_t HostMetrics::memory_limit() const {
  return limits_.memory_bytes != 0 ? limits_.memory_bytes : memory_.total;
}

void HostMetrics::add_process(std::vector<Metric>& out) {
  const auto stat = parse_process_stat(read_small_file(root_ / "proc/self/stat"));
  if (!stat) return;
  const double now = uptime_s();
  const double cpu = per_second(stat->cpu_ticks);
  if (last_uptime_s_ == 0) last_uptime_s_ = per_second(stat->start_ticks);
  if (now > last_uptime_s_)
    out.push_back({"cpu", percent(cpu - last_cpu_s_, (now - last_uptime_s_) * cpus_)});
  last_uptime_s_ = now;
  last_cpu_s_ = cpu;

  const double rss = static_cast<double>(stat->rss_pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  out.push_back({"proc.cpu.threads", static_cast<double>(stat->threads)});
  out.push_back({"proc.memory.rssMB", rss / kMb});
  if (memory_limit() != 0)
    out.push_back({"proc.memory.percent", percent(rss, static_cast<double>(memory_limit()))});
}

void HostMetrics::add_memory(std::vector<Metric>& out) const {
  double total = 0;
  double available = 0;
  const auto in_group = parse_unsigned(read_small_file(limits_.memory_usage_file));
  if (limits_.memory_bytes != 0 && in_group) {
    total = static_cast<double>(limits_.memory_bytes);
    available = std::max(0.0, total - static_cast<double>(*in_group));
  } else if (const auto now = parse_meminfo(read_small_file(root_ / "proc/meminfo"))) {
    total = static_cast<double>(now->total);
    available = static_cast<double>(now->available);
  } else {
    return;
  }
  out.push_back({"memory_percent", percent(total - available, total)});
  out.push_back({"proc.memory.availableMB", available / kMb});
}

void HostMetrics::add_network(std::vector<Metric>& out) {
  const auto now = parse_net_dev(read_small_file(root_ / "proc/net/dev"));
  if (!now) return;
  if (!first_network_) first_network_ = now;
  out.push_back({"network.sent", growth(now->sent, first_network_->sent)});
  out.push_back({"network.recv", growth(now->received, first_network_->received)});
}

void HostMetrics::add_disk_usage(std::vector<Metric>& out) const {
  struct statvfs facts{};
  if (!mount_ || ::statvfs(folder_.c_str(), &facts) != 0 || facts.f_blocks == 0) return;
  const double used = static_cast<double>(facts.f_blocks - facts.f_bfree);
  const std::string prefix = "disk." + mount_->path;
  // As df: of what a user without privileges can have.
  out.push_back({prefix + ".usagePercent", percent(used, used + static_cast<double>(facts.f_bavail))});
  out.push_back({prefix + ".usageGB", used * static_cast<double>(facts.f_frsize) / kGb});
}

void HostMetrics::add_disk_traffic(std::vector<Metric>& out) {
  if (!mount_) return;
  const auto now = find_disk(read_small_file(root_ / "proc/diskstats"), mount_->device_number);
  if (!now) return;
  if (!first_disk_) first_disk_ = now;
  out.push_back({"disk." + now->device + ".in", growth(now->read, first_disk_->read) / kMb});
  out.push_back({"disk." + now->device + ".out", growth(now->written, first_disk_->written) / kMb});
}

}  // namespace ranklog::writer
