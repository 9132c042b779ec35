// Sixteen virtual f32 lanes on the vectors of each instruction set. Kernels reduce over these sixteen and a
// fixed tree, never over the hardware width, so a sum has the same bits on AVX2 and AVX-512. Included once
// per instruction set, after foreach_target.h, at file scope (as Highway's own -inl headers are).
#if defined(ROPD_KERNELS_LANES_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPD_KERNELS_LANES_H
#undef ROPD_KERNELS_LANES_H
#else
#define ROPD_KERNELS_LANES_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/elementary.h"
#include "tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;
inline constexpr int64_t kWidth = hn::MaxLanes(FloatTag());
inline constexpr int64_t kLanes = 16;
inline constexpr int64_t kVectors = kLanes / kWidth;

struct Lanes {
  FloatVector vector[kVectors];
};

// One expression for each vector; the loops are unrolled so that a Lanes lives in registers at -O2 too.
template <class Operation>
HWY_INLINE Lanes each_vector(Operation operation) {
  Lanes result;
#pragma GCC unroll 4
  for (int64_t i = 0; i < kVectors; ++i) result.vector[i] = operation(i);
  return result;
}

HWY_INLINE Lanes broadcast(float value) {
  return each_vector([=](int64_t) HWY_ATTR { return hn::Set(FloatTag(), value); });
}
HWY_INLINE Lanes load(const float* p) {
  return each_vector([=](int64_t i) HWY_ATTR { return hn::LoadU(FloatTag(), p + i * kWidth); });
}
HWY_INLINE void store(const Lanes& x, float* p) {
#pragma GCC unroll 4
  for (int64_t i = 0; i < kVectors; ++i) hn::StoreU(x.vector[i], FloatTag(), p + i * kWidth);
}
HWY_INLINE Lanes operator+(const Lanes& a, const Lanes& b) {
  return each_vector([&](int64_t i) HWY_ATTR { return hn::Add(a.vector[i], b.vector[i]); });
}
HWY_INLINE Lanes operator-(const Lanes& a, const Lanes& b) {
  return each_vector([&](int64_t i) HWY_ATTR { return hn::Sub(a.vector[i], b.vector[i]); });
}
HWY_INLINE Lanes operator*(const Lanes& a, const Lanes& b) {
  return each_vector([&](int64_t i) HWY_ATTR { return hn::Mul(a.vector[i], b.vector[i]); });
}
HWY_INLINE Lanes operator/(const Lanes& a, const Lanes& b) {
  return each_vector([&](int64_t i) HWY_ATTR { return hn::Div(a.vector[i], b.vector[i]); });
}
HWY_INLINE Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {  // a * b + c
  return each_vector([&](int64_t i) HWY_ATTR { return hn::MulAdd(a.vector[i], b.vector[i], c.vector[i]); });
}
HWY_INLINE Lanes max(const Lanes& a, const Lanes& b) {
  return each_vector([&](int64_t i) HWY_ATTR { return hn::Max(a.vector[i], b.vector[i]); });
}
HWY_INLINE bool any_greater(const Lanes& a, const Lanes& b) {
  bool any = false;
#pragma GCC unroll 4
  for (int64_t i = 0; i < kVectors; ++i) any |= !hn::AllFalse(FloatTag(), hn::Gt(a.vector[i], b.vector[i]));
  return any;
}

// The parts of exp(x) = significand * 2^n for x within its limits; `shifted` holds n in its lowest bits.
struct ExpParts {
  FloatVector significand, shifted;
};
HWY_INLINE ExpParts exp_parts(FloatVector x) {
  using C = ExpConstants;
  const auto constant = [](float value) HWY_ATTR { return hn::Set(FloatTag(), value); };
  const auto shifted = hn::MulAdd(x, constant(C::kInverseLn2), constant(C::kRound));
  const auto n = hn::Sub(shifted, constant(C::kRound));
  auto r = hn::MulAdd(n, constant(-C::kLn2High), x);
  r = hn::MulAdd(n, constant(-C::kLn2Low), r);
  auto q = hn::MulAdd(constant(C::kQ4), r, constant(C::kQ3));
  q = hn::MulAdd(q, r, constant(C::kQ2));
  q = hn::MulAdd(q, r, constant(C::kQ1));
  q = hn::MulAdd(q, r, constant(C::kQ0));
  return {hn::Add(hn::MulAdd(q, hn::Mul(r, r), r), constant(1.0f)), shifted};
}

// kernels::exp on a vector: the same operations in the same order, so the same bits.
HWY_INLINE FloatVector exp(FloatVector x) {
  using C = ExpConstants;
  const FloatTag tag;
  const hn::RebindToSigned<FloatTag> signed_tag;
  const auto constant = [tag](float value) HWY_ATTR { return hn::Set(tag, value); };
  x = hn::IfThenElse(hn::Lt(x, constant(C::kLowest)), constant(C::kLowest), x);
  x = hn::IfThenElse(hn::Gt(x, constant(C::kHighest)), constant(C::kHighest), x);
  const ExpParts parts = exp_parts(x);
  const auto exponent =
      hn::Sub(hn::BitCast(signed_tag, parts.shifted), hn::BitCast(signed_tag, constant(C::kRound)));
  const auto half = hn::ShiftRight<1>(exponent);
  const auto bias = hn::Set(signed_tag, 127);
  const auto factor = hn::BitCast(tag, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const auto other_factor = hn::BitCast(tag, hn::ShiftLeft<23>(hn::Add(hn::Sub(exponent, half), bias)));
  return hn::Mul(hn::Mul(parts.significand, factor), other_factor);
}

// The same bits for |x| <= kExpNormal, where neither limit is reached and the result is a normal number: the
// power of two goes into the exponent field.
inline constexpr float kExpNormal = 86.0f;
HWY_INLINE FloatVector exp_normal(FloatVector x) {
  const FloatTag tag;
  const hn::RebindToSigned<FloatTag> signed_tag;
  const ExpParts parts = exp_parts(x);
  // The bits of kRound that the shift leaves are zero.
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(signed_tag, parts.shifted));
  return hn::BitCast(tag, hn::Add(hn::BitCast(signed_tag, parts.significand), exponent));
}
HWY_INLINE bool all_within(const Lanes& x, float limit) {  // NaN is not
  const FloatTag tag;
  auto within = hn::Le(hn::Abs(x.vector[0]), hn::Set(tag, limit));
#pragma GCC unroll 16
  for (int64_t i = 1; i < kVectors; ++i)
    within = hn::And(within, hn::Le(hn::Abs(x.vector[i]), hn::Set(tag, limit)));
  return hn::AllTrue(tag, within);
}
HWY_INLINE Lanes exp(const Lanes& x) {
  if (HWY_LIKELY(all_within(x, kExpNormal)))
    return each_vector([&](int64_t i) HWY_ATTR { return exp_normal(x.vector[i]); });
  return each_vector([&](int64_t i) HWY_ATTR { return exp(x.vector[i]); });
}

// The first n < 16 lanes from memory, the others `fill`. Nothing behind them is touched: vectors that are
// complete are loaded whole, of the one that is not the instruction set leaves out what is not there.
HWY_INLINE Lanes load_some(const float* p, int64_t n, float fill = 0.0f) {
  if constexpr (kWidth >= 8) {
    const FloatTag tag;
    return each_vector([=](int64_t i) HWY_ATTR {
      const int64_t rest = n - i * kWidth;
      const auto others = hn::Set(tag, fill);
      if (rest <= 0) return others;
      if (rest >= kWidth) return hn::LoadU(tag, p + i * kWidth);
      const auto mask = hn::FirstN(tag, static_cast<size_t>(rest));
      return hn::IfThenElse(mask, hn::MaskedLoad(mask, tag, p + i * kWidth), others);
    });
  } else {
    alignas(64) float values[kLanes];
    std::fill_n(values, kLanes, fill);
    std::copy_n(p, n, values);
    return load(values);
  }
}
// Masked stores are slow on some processors; pieces of constant size need no loop.
HWY_INLINE void store_some(const Lanes& x, float* p, int64_t n) {
  alignas(64) float values[kLanes];
  store(x, values);
  const float* from = values;
#pragma GCC unroll 4
  for (int64_t piece = kLanes / 2; piece > 0; piece /= 2)
    if (n & piece) {
      std::memcpy(p, from, static_cast<size_t>(piece) * sizeof(float));
      p += piece;
      from += piece;
    }
}
HWY_INLINE Lanes load(const float* p, int64_t n, float fill) {
  return n >= kLanes ? load(p) : load_some(p, n, fill);
}
HWY_INLINE Lanes load(const float* p, int64_t n) { return load(p, n, 0.0f); }
HWY_INLINE void store(const Lanes& x, float* p, int64_t n) {
  n >= kLanes ? store(x, p) : store_some(x, p, n);
}

// The fixed tree: halves are added until one value is left.
template <class Tag>
HWY_INLINE float sum_vector(Tag, hn::Vec<Tag> x) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(Tag()) > 1) {
    const hn::Half<Tag> half;
    return sum_vector(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
#endif
  return hn::GetLane(x);
}
HWY_INLINE float sum(Lanes x) {
#pragma GCC unroll 4
  for (int64_t half = kVectors / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int64_t i = 0; i < half; ++i) x.vector[i] = hn::Add(x.vector[i], x.vector[i + half]);
  return sum_vector(FloatTag(), x.vector[0]);
}
HWY_INLINE float maximum(const Lanes& x) {
  FloatVector all = x.vector[0];
#pragma GCC unroll 4
  for (int64_t i = 1; i < kVectors; ++i) all = hn::Max(all, x.vector[i]);
  return hn::GetLane(hn::MaxOfLanes(FloatTag(), all));
}

// Calls body(offset, n) for runs of 16 elements: first the full ones with a constant n, then what is left.
// Callers are marked
// [[gnu::flatten]], so that the body is inlined into both loops.
template <class Body>
HWY_INLINE void for_lanes(int64_t count, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, kLanes);
  if (i < count) body(i, count - i);
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
