#include "loop_disk.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "process.hpp"

namespace ranklog::test {
namespace {

bool run(const Arguments& command) {
  Process process("/usr/bin/env", command);
  return process.wait(std::chrono::seconds(60)) == 0;
}

}  // namespace

LoopDisk::LoopDisk(int mebibytes) {
  const auto image = (dir_ / "image").string();
  std::filesystem::create_directory(path());
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    missing_ = "this process may not mount";
  } else if (!run({"truncate", "-s", std::to_string(mebibytes) + "M", image}) ||
             !run({"mkfs.ext4", "-q", "-F", image})) {
    missing_ = "mkfs.ext4 is not there";
  } else if (!run({"mount", "-o", "loop", image, path().string()})) {
    missing_ = "there is no loop device";
  } else {
    mounted_ = true;
  }
}

LoopDisk::~LoopDisk() {
  if (mounted_) ::umount2(path().c_str(), MNT_DETACH);
}

bool LoopDisk::freeze(std::chrono::milliseconds time) {
  const int fd = ::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int answer[2];
  if (fd < 0 || ::pipe(answer) != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) std::signal(number, SIG_IGN);
    const char frozen = ::ioctl(fd, FIFREEZE, 0) == 0 ? 1 : 0;
    static_cast<void>(::write(answer[1], &frozen, 1));
    std::this_thread::sleep_for(time);
    if (frozen != 0) ::ioctl(fd, FITHAW, 0);
    ::_exit(0);
  }
  char frozen = 0;
  const bool told = child > 0 && ::read(answer[0], &frozen, 1) == 1;
  for (const int open_fd : {fd, answer[0], answer[1]}) ::close(open_fd);
  return told && frozen != 0;
}

}  // namespace ranklog::test
