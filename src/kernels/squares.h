// Packing turns rows into columns: by squares of values, transposed in registers, rounded to bf16 on the way.
// Included once per instruction set, after foreach_target.h (see lanes.h).
#if defined(ROPD_KERNELS_SQUARES_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPD_KERNELS_SQUARES_H
#undef ROPD_KERNELS_SQUARES_H
#else
#define ROPD_KERNELS_SQUARES_H
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using SquareTag = hn::CappedTag<float, 8>;
using SquareRow = hn::Vec<SquareTag>;
using SquareWords = hn::RebindToUnsigned<SquareTag>;
inline constexpr int64_t kSquare = hn::MaxLanes(SquareTag());

// As float_to_bf16 rounds, but still f32.
template <class Tag>
HWY_INLINE hn::Vec<Tag> rounded_bf16(Tag tag, hn::Vec<Tag> values) {
  const hn::RebindToUnsigned<Tag> whole;
  const auto bits = hn::BitCast(whole, values);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(whole, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(whole, 0x7fff)), odd);
  const auto quiet = hn::Or(bits, hn::Set(whole, 0x400000));
  // Not Ne(), which on AVX-512 is false for NaN.
  const auto is_number = hn::MaskFromVec(hn::BitCast(whole, hn::VecFromMask(tag, hn::Eq(values, values))));
  const auto chosen = hn::IfThenElse(is_number, rounded, quiet);
  return hn::BitCast(tag, hn::And(chosen, hn::Set(whole, 0xffff0000u)));
}
HWY_INLINE SquareRow rounded_bf16(SquareRow row) { return rounded_bf16(SquareTag(), row); }

HWY_INLINE SquareRow load_wide(const float* p) { return hn::LoadU(SquareTag(), p); }
HWY_INLINE SquareRow load_wide(const Bf16* p) {
  const hn::Rebind<uint16_t, SquareTag> half;
  return hn::BitCast(SquareTag(), hn::ShiftLeft<16>(hn::PromoteTo(SquareWords(), hn::LoadU(half, p))));
}

// Two values in a word, `low` in its lower half; both on the bf16 grid already.
HWY_INLINE hn::Vec<SquareWords> paired(SquareRow low, SquareRow high) {
  const SquareWords words;
  return hn::Or(hn::ShiftRight<16>(hn::BitCast(words, low)), hn::BitCast(words, high));
}

HWY_INLINE void transpose(SquareRow (&rows)[kSquare]) {
#if HWY_TARGET != HWY_SCALAR
  const SquareTag tag;
  const hn::RepartitionToWide<SquareTag> pairs;
  SquareRow half[kSquare];
#pragma GCC unroll 8
  for (int64_t i = 0; i < kSquare; i += 2) {
    half[i] = hn::InterleaveLower(tag, rows[i], rows[i + 1]);
    half[i + 1] = hn::InterleaveUpper(tag, rows[i], rows[i + 1]);
  }
#pragma GCC unroll 8
  for (int64_t i = 0; i < kSquare; i += 4)
#pragma GCC unroll 2
    for (int64_t j = 0; j < 2; ++j) {
      const auto upper = hn::BitCast(pairs, half[i + j]), lower = hn::BitCast(pairs, half[i + 2 + j]);
      rows[i + 2 * j] = hn::BitCast(tag, hn::InterleaveLower(pairs, upper, lower));
      rows[i + 2 * j + 1] = hn::BitCast(tag, hn::InterleaveUpper(pairs, upper, lower));
    }
  if constexpr (kSquare == 8) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) {
      const SquareRow left = rows[i], right = rows[i + 4];
      rows[i] = hn::ConcatLowerLower(tag, right, left);
      rows[i + 4] = hn::ConcatUpperUpper(tag, right, left);
    }
  }
#else
  (void)rows;  // one value
#endif
}

// Columns that are stored one behind the other become rows by a cache line of each at a time, kSquare columns after the
// other: columns are often a power of two apart, where the first-level cache keeps few lines of them.
template <class Stored>
inline constexpr int64_t kLineOf = 64 / sizeof(Stored);

// Meanwhile what comes of the same kSquare columns is on its way to the second-level cache: `depth` values of each
// column, then of those `next` columns further on.
template <class Stored>
HWY_INLINE void fetch_columns(const Stored* column, int64_t k, int64_t depth, int64_t stride, int64_t next) {
  k += 4 * kLineOf<Stored>;
  if (k >= depth) column += next * stride - depth;
#pragma GCC unroll 8
  for (int64_t i = 0; i < kSquare; ++i) __builtin_prefetch(column + i * stride + k, 0, 2);
}

// Transposed squares of kGroups * kSquare rows, of which `rows` exist, as columns of that many words one behind the
// other. In order: what a store writes too much the next one overwrites. The last columns go through a copy, since
// behind them another thread may have written already.
template <int64_t kGroups>
HWY_INLINE void store_columns(const SquareRow (&squares)[kGroups][kSquare], int64_t rows, void* to,
                              bool is_last) {
  constexpr int64_t kMost = kGroups * kSquare;
  float copy[kMost * (kSquare + 1)];
  float* at = is_last ? copy : static_cast<float*>(to);
#pragma GCC unroll 8
  for (int64_t i = 0; i < kSquare; ++i)
    for (int64_t g = 0; g * kSquare < rows; ++g)
      hn::StoreU(squares[g][i], SquareTag(), at + i * rows + g * kSquare);
  if (is_last) std::memcpy(to, copy, static_cast<size_t>(kSquare * rows) * sizeof(float));
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
