// Whether other programs want our cores: how long threads of this process were ready to run and had none.
// Time that a hypervisor takes from the whole machine does not count; nobody here could use it.
#pragma once
#include <chrono>
#include <cstdint>

#include "base/file.h"

namespace ropd {

// Nanoseconds that the tasks in the folder waited for a core, as Linux counts them (schedstat); 0 where it
// does not.
uint64_t waited_for_cores_ns(const Path& tasks = "/proc/self/task");

class CrowdWatch {
 public:
  // Of `threads` cores since it was made or last asked: the share that other programs had, from 0 to 1.
  double take_lost_share(size_t threads);

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  uint64_t waited_ns_ = waited_for_cores_ns();
};

}  // namespace ropd
