#include "base/stop.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace ropd {
namespace {

// Signals are a property of the process, so this state is too; lock-free atomics are what a handler may
// touch.
std::atomic<bool> is_requested{false};
std::atomic<int64_t> first_interrupt_ms{0};  // 0: none yet

int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000 + 1;
}

void handle_signal(int signal_number) {
  is_requested = true;
  if (signal_number != SIGINT) return;
  int64_t first = 0;
  if (first_interrupt_ms.compare_exchange_strong(first, now_ms())) return;
  if (!is_same_interrupt(first, now_ms())) ::_exit(130);
}

}  // namespace

void install_stop_handlers() {
  struct sigaction action {};
  action.sa_handler = handle_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

bool stop_requested() { return is_requested; }

void request_stop() { is_requested = true; }

void clear_stop_request() {
  is_requested = false;
  first_interrupt_ms = 0;
}

}  // namespace ropd
