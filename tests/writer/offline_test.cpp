// Logging never asks for a socket: the kernel ends the process that would.

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "helpers.hpp"

namespace ranklog {
namespace {

bool forbid_sockets() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(rules)), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

TEST(Offline, NoSocketIsEverAskedFor) {
  test::Child probe([] {
    if (!forbid_sockets()) return 2;
    return ::socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? 3 : 0;
  });
  ASSERT_EQ(probe.wait(), 128 + SIGSYS) << "the filter does not work here";

  const test::ScopedEnvironment environment({});
  const test::TempDir dir;
  test::write_file(dir / "model.pt", "weights");
  test::Child child([&] {
    if (!forbid_sockets()) return 2;
    auto options = test::options_in(dir / "logs");
    options.chunk_rows = 100;
    options.console = true;
    options.system_metrics_interval = std::chrono::milliseconds(100);
    auto log = Writer::open(options);
    log.config({{"lr", 0.1}});
    for (int i = 0; i < 1000; ++i) log.log(i, {{"i", i}});
    log.artifact("model", "model").add_file(dir / "model.pt").commit();
    return log.flush().durable && log.finish().durable ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace ranklog
