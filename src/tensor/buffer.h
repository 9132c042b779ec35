// Owned, 64-byte aligned floats that are not cleared when they grow: activations are written before they are
// read, and clearing them would cost as much as many of the kernels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ropd {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size) { resize(size); }
  // Contents are unspecified afterwards; memory is kept when shrinking.
  void resize(size_t size);
  void fill(float value);
  size_t size() const { return size_; }
  size_t bytes() const { return capacity_ * sizeof(float); }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::span<float> span() { return {data_.get(), size_}; }
  std::span<const float> span() const { return {data_.get(), size_}; }
  operator std::span<float>() { return span(); }
  operator std::span<const float>() const { return span(); }
  float& operator[](size_t index) { return data_.get()[index]; }
  float operator[](size_t index) const { return data_.get()[index]; }

 private:
  struct Free {
    void operator()(float* data) const;
  };
  std::unique_ptr<float, Free> data_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace ropd
