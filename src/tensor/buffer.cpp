#include "tensor/buffer.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/large_allocations.h"
#include "base/parallel.h"

namespace ropd {

void Buffer::Free::operator()(float* data) const { std::free(data); }

void Buffer::resize(size_t size) {
  if (size > capacity_) {
    data_.reset();  // first, so that old and new never exist together
    capacity_ = (size + 15) / 16 * 16;
    data_.reset(static_cast<float*>(allocate_aligned(capacity_ * sizeof(float))));
    if (!data_) {
      capacity_ = size_ = 0;
      throw std::bad_alloc();
    }
  }
  size_ = size;
}

// By all threads: a gradient is larger than what one core clears in passing, and fresh memory comes to the
// threads that write it first.
void Buffer::fill(float value) {
  const auto size = static_cast<int64_t>(size_);
  parallel_chunks(size, int64_t{1} << 16, size / 2, [&](int64_t begin, int64_t end) {
    std::fill(data_.get() + begin, data_.get() + end, value);
  });
}

}  // namespace ropd
