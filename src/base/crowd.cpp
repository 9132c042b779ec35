#include "base/crowd.h"

#include <algorithm>
#include <fstream>
#include <system_error>

namespace ropd {

uint64_t waited_for_cores_ns(const Path& tasks) {
  uint64_t sum = 0;
  std::error_code error;
  for (auto task = std::filesystem::directory_iterator(tasks, error);
       !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    std::ifstream file(task->path() / "schedstat");
    if (uint64_t ran = 0, waited = 0; file >> ran >> waited) sum += waited;
  }
  return sum;
}

double CrowdWatch::take_lost_share(size_t threads) {
  const auto now = std::chrono::steady_clock::now();
  const uint64_t waited_ns = waited_for_cores_ns();
  const double nanoseconds = std::chrono::duration<double, std::nano>(now - begin_).count() *
                             static_cast<double>(std::max<size_t>(threads, 1));
  // Threads that have ended take what they waited with them.
  const double lost = static_cast<double>(waited_ns - std::min(waited_ns, waited_ns_));
  begin_ = now;
  waited_ns_ = waited_ns;
  return std::clamp(lost / nanoseconds, 0.0, 1.0);
}

}  // namespace ropd
