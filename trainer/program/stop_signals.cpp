#include "stop_signals.hpp"

#include <csignal>

namespace ranklog {
namespace {

volatile std::sig_atomic_t preempt_seen = 0;
volatile std::sig_atomic_t interrupt_seen = 0;

void on_preempt(int) {
  preempt_seen = 1;
}

void on_interrupt(int) {
  interrupt_seen = 1;
}

void install(int signal, void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void catch_stop_signals() {
  install(SIGTERM, on_preempt, 0);
  install(SIGUSR1, on_preempt, 0);
  install(SIGINT, on_interrupt, static_cast<int>(SA_RESETHAND));
}

StopRequest stop_requested() noexcept {
  if (interrupt_seen) return StopRequest::kInterrupt;
  return preempt_seen ? StopRequest::kPreempt : StopRequest::kNone;
}

}  // namespace ranklog
