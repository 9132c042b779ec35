// Work shared out to the OpenMP threads in chunks. What a chunk computes does not depend on the thread, so
// neither does any result.
#pragma once
#include <algorithm>
#include <cstdint>

namespace ropd::kernels {

// Below this many elementary operations a parallel region costs more than it saves.
inline constexpr int64_t kWorthThreads = int64_t{1} << 15;

// Calls body(begin, end) for the chunks of [0, count); `work` is about the number of elementary operations of
// all of it.
template <class Body>
void parallel_chunks(int64_t count, int64_t chunk, int64_t work, const Body& body) {
  const int64_t num_chunks = (count + chunk - 1) / chunk;
#pragma omp parallel for schedule(static) if (work >= kWorthThreads && num_chunks > 1)
  for (int64_t i = 0; i < num_chunks; ++i) body(i * chunk, std::min(count, (i + 1) * chunk));
}

}  // namespace ropd::kernels
