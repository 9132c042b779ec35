#include "base/mapped_regions.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/visible_text.h"

namespace ropd {
namespace {

struct Region {
  std::atomic<bool> is_taken{false};
  std::atomic<uintptr_t> begin{0};  // 0: not to be looked at
  size_t bytes = 0;
  std::array<char, 1024> path{};
};

std::array<Region, 256> regions;

void say(const char* text) {
  // Nothing can be done about a failure here.
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
}

void handle_bus_error(int signal_number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Region& region : regions) {
    const uintptr_t begin = region.begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address >= begin + region.bytes) continue;
    say("ropd: ");
    say(region.path.data());
    say(": cannot be read any more (cut short while in use, or an unreadable sector of the disk)\n");
    ::_exit(1);
  }
  ::signal(signal_number, SIG_DFL);  // the instruction runs again and ends the program
}

}  // namespace

void note_mapping(const void* begin, size_t bytes, const std::string& path) {
  for (Region& region : regions) {
    bool is_taken = false;
    if (!region.is_taken.compare_exchange_strong(is_taken, true)) continue;
    region.bytes = bytes;
    const std::string shown = visible_line(path);  // now: the handler may not
    const size_t length = std::min(shown.size(), region.path.size() - 1);
    std::memcpy(region.path.data(), shown.data(), length);
    region.path[length] = '\0';
    region.begin.store(reinterpret_cast<uintptr_t>(begin), std::memory_order_release);
    return;
  }
}

void forget_mapping(const void* begin) {
  for (Region& region : regions)
    if (region.begin.load(std::memory_order_acquire) == reinterpret_cast<uintptr_t>(begin)) {
      region.begin.store(0, std::memory_order_release);
      region.is_taken.store(false);
      return;
    }
}

void install_bus_error_handler() {
  struct sigaction action {};
  action.sa_sigaction = handle_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace ropd
