// A long zeroed vector of floats in memory, or in a scratch file that the system pages in and out: for state
// that is touched once a step (optimizer moments, trigger means) where memory is short. Contents do not
// outlive the object; checkpoints do.
#pragma once
#include <cstddef>
#include <span>

#include "base/file.h"

namespace ropd {

// Move-only.
class FloatStorage {
 public:
  FloatStorage() = default;
  explicit FloatStorage(size_t size);
  // In a new file inside `directory`, with its disk space reserved; the name is removed at once, so a killed
  // process leaves nothing behind but an empty file that the next one removes. Fails when the disk is too small.
  FloatStorage(size_t size, const Path& directory);
  FloatStorage(FloatStorage&& other) noexcept;
  FloatStorage& operator=(FloatStorage&& other) noexcept;
  ~FloatStorage();

  std::span<float> values() { return {data_, size_}; }
  std::span<const float> values() const { return {data_, size_}; }
  size_t size() const { return size_; }

 private:
  float* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ropd
