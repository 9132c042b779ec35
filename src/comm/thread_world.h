// Ranks that are threads of one process: for tests, which then need neither MPI nor other programs, and under
// sanitizers. The transport is memory; sums, slices and lots take the same way as between machines.
#pragma once
#include <functional>

#include "comm/world.h"

namespace ropd::comm {

// Calls work(world) for every rank of a world of `size`, each on a thread of its own, and returns when all have
// returned. When one throws, whoever waits for it fails too; the first failure is thrown at the end. A wait for
// a rank that has returned fails at once: it would never end.
void run_thread_world(int size, const std::function<void(World& world)>& work);

}  // namespace ropd::comm
