#include "tensor/buffer.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/large_allocations.h"

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

void Buffer::fill(float value) { std::fill_n(data_.get(), size_, value); }

}  // namespace ropd
