// The one exponential of the program, so that a probability has the same bits wherever it is computed.
//   exp(x) = 2^n * e^r,   n = round(x / ln 2),   r = x - n ln 2,   |r| <= 0.35
// Branch-free: g++ vectorises a loop over it on every instruction set, with the bits of the scalar call. At
// most 1 ulp from the true value (elementary_test measures it), exp(0) == 1, exp(-inf) == 0, overflow gives
// inf, underflow is gradual, NaN stays NaN.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace ropd::kernels {

[[gnu::always_inline]] inline float exp(float x) {
  // Beyond these bounds the result is 0 or inf in any case; NaN passes both comparisons unchanged.
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits of the mantissa
  const float shifted = std::fma(x, 0x1.715476p0f, kRound);
  const float n = shifted - kRound;
  float r =
      std::fma(n, -0x1.62e400p-1f, x);  // ln 2 in two parts; the first has spare low bits: n * part is exact
  r = std::fma(n, -0x1.7f7d1cp-20f, r);
  float q = 0x1.6850e4p-10f;
  q = std::fma(q, r, 0x1.123bccp-7f);
  q = std::fma(q, r, 0x1.555b98p-5f);
  q = std::fma(q, r, 0x1.55548ep-3f);
  q = std::fma(q, r, 0x1.fffff8p-2f);
  const float significand = std::fma(q, r * r, r) + 1.0f;
  // 2^n in two factors, so that n = 128 and the subnormal range need no special case.
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
  const int32_t half = exponent >> 1;
  const float factor = std::bit_cast<float>((half + 127) << 23);
  const float other_factor = std::bit_cast<float>((exponent - half + 127) << 23);
  return significand * factor * other_factor;
}

// Once per row only; correctly rounded in practice.
inline float log(float x) { return static_cast<float>(std::log(static_cast<double>(x))); }

// y[i] = exp(x[i]), in the widest vectors of the machine; y may be x.
void exp(std::span<float> y, std::span<const float> x);

}  // namespace ropd::kernels
