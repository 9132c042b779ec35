// The one exponential of the program, so that a probability has the same bits wherever it is computed.
//   exp(x) = 2^n * e^r,   n = round(x / ln 2),   r = x - n ln 2,   |r| <= 0.35
// Branch-free. The vector form (lanes.h) has the bits of the scalar call. At most 1 ulp from the true value
// (elementary_test measures it), exp(0) == 1, exp(-inf) == 0, overflow gives inf, underflow is gradual, NaN
// stays NaN.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace ropd::kernels {

// The formula's constants; lanes.h spells the same operations on vectors.
struct ExpConstants {
  static constexpr float kLowest = -104.0f,
                         kHighest = 89.0f;  // beyond these the result is 0 or inf in any case
  static constexpr float kRound =
      0x1.8p23f;  // adding it leaves the nearest integer in the low bits of the mantissa
  static constexpr float kInverseLn2 = 0x1.715476p0f;
  static constexpr float kLn2High = 0x1.62e400p-1f, kLn2Low = 0x1.7f7d1cp-20f;  // n * kLn2High is exact
  // Minimax fit of (e^r - 1 - r) / r^2, relative error of e^r 3e-9.
  static constexpr float kQ0 = 0x1.fffffcp-2f, kQ1 = 0x1.555490p-3f, kQ2 = 0x1.5558f4p-5f,
                         kQ3 = 0x1.123a6cp-7f, kQ4 = 0x1.6a234ep-10f;
};

[[gnu::always_inline]] inline float exp(float x) {
  using C = ExpConstants;
  x = x < C::kLowest ? C::kLowest : x;  // NaN passes both comparisons unchanged
  x = x > C::kHighest ? C::kHighest : x;
  const float shifted = std::fma(x, C::kInverseLn2, C::kRound);
  const float n = shifted - C::kRound;
  float r = std::fma(n, -C::kLn2High, x);
  r = std::fma(n, -C::kLn2Low, r);
  float q = std::fma(C::kQ4, r, C::kQ3);
  q = std::fma(q, r, C::kQ2);
  q = std::fma(q, r, C::kQ1);
  q = std::fma(q, r, C::kQ0);
  const float significand = std::fma(q, r * r, r) + 1.0f;
  // 2^n in two factors, so that n = 128 and the subnormal range need no special case.
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(C::kRound);
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(exponent) >> 1);
  const float factor = std::bit_cast<float>((half + 127u) << 23);
  const float other_factor = std::bit_cast<float>((exponent - half + 127u) << 23);
  return significand * factor * other_factor;
}

// Once per row only; correctly rounded in practice.
inline float log(float x) { return static_cast<float>(std::log(static_cast<double>(x))); }

// y[i] = exp(x[i]), in the widest vectors of the machine; y may be x.
void exp(std::span<float> y, std::span<const float> x);

}  // namespace ropd::kernels
