// Large blocks of memory on huge pages. Matrix products walk through weights and activations in strides that
// touch a new page almost every time; with pages of 4 KiB the address translation alone costs a twentieth of
// their speed, and filling fresh memory costs five hundred times as many page faults.
//
// This replaces the program's operator new (the standard's own delete still frees it), so no container has to
// know. Sanitizers bring their own and keep it.
#include "base/large_allocations.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define ROPD_HAS_OWN_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ROPD_HAS_OWN_ALLOCATOR 1
#endif
#endif

namespace {

constexpr size_t kHugePage = size_t{2} << 20;

bool is_large(size_t bytes) { return bytes >= 2 * kHugePage; }

void* allocate_large(size_t bytes) {
  if (bytes > SIZE_MAX - kHugePage) return nullptr;
  void* block = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  // Advice only: where huge pages are switched off nothing changes.
  if (block) madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

}  // namespace

namespace ropd {

void* allocate_aligned(size_t bytes) {
  return is_large(bytes) ? allocate_large(bytes) : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
}

}  // namespace ropd

#ifndef ROPD_HAS_OWN_ALLOCATOR
void* operator new(size_t bytes) {
  for (;;) {
    if (void* block = is_large(bytes) ? allocate_large(bytes) : std::malloc(bytes > 0 ? bytes : 1))
      return block;
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}
#endif
