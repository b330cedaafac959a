#include "tmpfs.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace ranklog::test {

Tmpfs::Tmpfs(int kibibytes) {
  const std::string size = "size=" + std::to_string(kibibytes) + "k";
  mounted_ = ::unshare(CLONE_NEWNS) == 0 &&
             ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
             ::mount("ranklog", path().c_str(), "tmpfs", 0, size.c_str()) == 0;
}

Tmpfs::~Tmpfs() {
  if (mounted_) ::umount2(path().c_str(), MNT_DETACH);
}

void Tmpfs::fill() const {
  const int ballast = ::open((path() / "ballast").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  const std::string block(4096, 'x');
  while (::write(ballast, block.data(), block.size()) > 0) continue;
  ::close(ballast);
}

}  // namespace ranklog::test
