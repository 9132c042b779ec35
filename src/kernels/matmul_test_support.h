// The contract of matmul.h, word for word, for tests.
#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/matmul.h"

namespace ropd::kernels {

inline constexpr Precision kPrecisions[] = {Precision::f32, Precision::bf16, Precision::bf16_tiles};

inline float rounded(float value, Precision precision) {
  return is_bf16(precision) ? bf16_to_float(float_to_bf16(value)) : value;
}

// c plus the products a(d) · b(d) of `depth` numbers.
template <class A, class B>
float summed(float c, int64_t depth, Precision precision, const A& a, const B& b) {
  const auto continued = [&](int64_t d, float sum) {
    return std::fma(rounded(a(d), precision), rounded(b(d), precision), sum);
  };
  if (precision != Precision::bf16_tiles) {
    for (int64_t d = 0; d < depth; ++d) c = continued(d, c);
    return c;
  }
  for (int64_t block = 0; block < depth; block += 32) {
    float even = 0, odd = 0;
    for (int64_t d = block; d < depth && d < block + 32; ++d)
      (d % 2 ? odd : even) = continued(d, d % 2 ? odd : even);
    c = c + (even + odd);
  }
  return c;
}

}  // namespace ropd::kernels
