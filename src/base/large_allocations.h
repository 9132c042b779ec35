// Memory whose large blocks lie on huge pages; see large_allocations.cpp.
#pragma once
#include <cstddef>

namespace ropd {

// `bytes` of memory, aligned to 64 at least, or nullptr; std::free() gives it back.
void* allocate_aligned(size_t bytes);

}  // namespace ropd
