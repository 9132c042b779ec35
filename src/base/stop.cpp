#include "base/stop.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace ropd {
namespace {

// Signals are a property of the process, so this state is too; lock-free atomics are what a handler may
// touch.
std::atomic<bool> is_requested{false};
std::atomic<int> num_interrupts{0};

void handle_signal(int signal_number) {
  is_requested = true;
  if (signal_number == SIGINT && ++num_interrupts > 1) ::_exit(130);
}

}  // namespace

void install_stop_handlers() {
  struct sigaction action {};
  action.sa_handler = handle_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool stop_requested() { return is_requested; }

void request_stop() { is_requested = true; }

void clear_stop_request() {
  is_requested = false;
  num_interrupts = 0;
}

}  // namespace ropd
