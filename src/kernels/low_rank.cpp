#include "kernels/low_rank.h"

#include "kernels/instruction_sets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/low_rank.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "kernels/lanes.h"
#include "kernels/squares.h"
#include "kernels/tile_product.h"

#ifndef ROPD_KERNELS_LOW_RANK_TYPES
#define ROPD_KERNELS_LOW_RANK_TYPES
namespace ropd::kernels {

struct F16 {
  uint16_t bits;
};

// The products of the gradient for some tokens. Everything of r columns has them padded to `padded` with zeros.
struct ThinProducts {
  int64_t tokens, inputs, outputs, rank, padded;
  const float* x;       // [tokens, inputs]
  const float* grad_y;  // [tokens, outputs]
  const float* a;       // [inputs, padded]: transposed
  const float* b;       // [outputs, padded]
  float scale;
  bool round_to_bf16;  // what becomes of x Aᵀ and grad_y B; the factors above are rounded already
  float* down;         // [tokens, padded]: scale · (x Aᵀ)
  float* back;         // [tokens, padded]: scale · (grad_y B)
  float* grad_a;       // [rank, inputs]
  float* grad_b;       // [outputs, padded]
};

}  // namespace ropd::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

// A tile of the merged matrix: so many sums stay in registers and keep both multiply-add units busy.
inline constexpr int kTileRows = kWidth >= 8 ? 6 : kWidth >= 4 ? 3 : 1, kTileVectors = kWidth == 8 ? 2 : 4;
inline constexpr int64_t kStrip = kTileVectors * kWidth;  // columns

inline float value_of(float value) { return value; }
inline float value_of(Bf16 value) { return bf16_to_float(value); }
inline float value_of(F16 value) { return f16_to_float(value.bits); }
inline void put(float& to, float value) { to = value; }
inline void put(Bf16& to, float value) { to = float_to_bf16(value); }

HWY_INLINE FloatVector load_stored(const float* from) { return hn::LoadU(FloatTag(), from); }
HWY_INLINE FloatVector load_stored(const Bf16* from) {
  const hn::Rebind<uint16_t, FloatTag> half;
  const hn::RebindToUnsigned<FloatTag> whole;
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(whole, hn::LoadU(half, from))));
}
HWY_INLINE FloatVector load_stored(const F16* from) {
  alignas(64) float values[kWidth];
  for (int64_t i = 0; i < kWidth; ++i) values[i] = value_of(from[i]);
  return hn::Load(FloatTag(), values);
}
HWY_INLINE void store_merged(FloatVector value, float* to) { hn::StoreU(value, FloatTag(), to); }
HWY_INLINE void store_merged(FloatVector value, Bf16* to) {
  const hn::Rebind<uint16_t, FloatTag> half;
  const hn::RebindToUnsigned<FloatTag> whole;
  hn::StoreU(hn::TruncateTo(half, hn::ShiftRight<16>(hn::BitCast(whole, rounded_bf16(FloatTag(), value)))),
             half, to);
}

// kRows rows below each other of one strip, of which the matrix has `columns` columns. a [r, kStrip] is dense.
template <int kRows, class Merged, class Stored>
HWY_INLINE void merge_tile(Merged* to, const Stored* stored, int64_t stride, const float* a, const float* b,
                           int64_t rank, float scale, int64_t columns) {
  const FloatTag tag;
  FloatVector sums[kRows][kTileVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; ++v) sums[r][v] = hn::Zero(tag);
  for (int64_t l = 0; l < rank; ++l) {
    FloatVector row[kTileVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; ++v) row[v] = hn::LoadU(tag, a + l * kStrip + v * kWidth);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const FloatVector value = hn::Set(tag, b[r * rank + l]);
#pragma GCC unroll 16
      for (int v = 0; v < kTileVectors; ++v) sums[r][v] = hn::MulAdd(value, row[v], sums[r][v]);
    }
  }
  const FloatVector factor = hn::Set(tag, scale);
  if (HWY_LIKELY(columns >= kStrip)) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < kTileVectors; ++v) {
        const int64_t at = r * stride + v * kWidth;
        store_merged(hn::Add(load_stored(stored + at), hn::Mul(factor, sums[r][v])), to + at);
      }
    return;
  }
  alignas(64) float change[kStrip];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kTileVectors; ++v) hn::Store(hn::Mul(factor, sums[r][v]), tag, change + v * kWidth);
    for (int64_t i = 0; i < columns; ++i)
      put(to[r * stride + i], value_of(stored[r * stride + i]) + change[i]);
  }
}

// Rows of A cut into strips that lie one behind the other, so that a tile reads them in one run. What is behind
// the last column is zero.
std::vector<float> in_strips(const float* a, int64_t rank, int64_t columns) {
  const int64_t strips = (columns + kStrip - 1) / kStrip;
  std::vector<float> result(static_cast<size_t>(strips * rank * kStrip), 0.0f);
  for (int64_t s = 0; s < strips; ++s)
    for (int64_t l = 0; l < rank; ++l)
      std::copy_n(a + l * columns + s * kStrip, std::min(kStrip, columns - s * kStrip),
                  result.data() + (s * rank + l) * kStrip);
  return result;
}

template <class Merged, class Stored>
void merge_matrix(Merged* merged, const Stored* stored, int64_t rows, int64_t columns,
                  const LowRank& change) {
  constexpr int64_t kRowsAtOnce = 8 * kTileRows;
  const int64_t rank = change.rank;
  const std::vector<float> strips = in_strips(change.a, rank, columns);
  // A tile after the other along kRows rows, each of which is one run in memory.
  const auto merge_rows = [&]<int kRows>(int64_t row) {
    const float* a = strips.data();
    for (int64_t column = 0; column < columns; column += kStrip, a += rank * kStrip)
      merge_tile<kRows>(merged + row * columns + column, stored + row * columns + column, columns, a,
                        change.b + row * rank, rank, change.scale, columns - column);
  };
  parallel_chunks(rows, kRowsAtOnce, rows * columns * (rank / 8 + 1), [&](int64_t begin, int64_t end) {
    int64_t row = begin;
    for (; row + kTileRows <= end; row += kTileRows) merge_rows.template operator()<kTileRows>(row);
    for (; row < end; ++row) merge_rows.template operator()<1>(row);
  });
}

template <class Merged>
void merge_stored(Merged* merged, const WeightView& stored, const LowRank& change) {
  const auto merge = [&](const auto* values) {
    merge_matrix(merged, values, stored.rows, stored.columns, change);
  };
  switch (stored.dtype) {
    case DType::f32:
      return merge(static_cast<const float*>(stored.data));
    case DType::bf16:
      return merge(static_cast<const Bf16*>(stored.data));
    case DType::f16:
      return merge(static_cast<const F16*>(stored.data));
  }
}

// Rows of a tile of sixteen columns, and of one of thirty-two where there are registers for it.
inline constexpr int kThinRows = kWidth == kLanes ? 12 : kWidth >= 8 ? 6 : kWidth >= 4 ? 3 : 1;
inline constexpr int kWideRows = kWidth == kLanes ? 8 : kThinRows;
inline constexpr int kWideVectors = kWidth == kLanes ? 2 * kVectors : kVectors;

// C [rows, padded] (+)= A · B [depth, padded].
void thin_product(float* c, const StridedRows& a, const float* b, int64_t rows, int64_t depth, int64_t padded,
                  bool add) {
  for (int64_t n = 0; n < padded; n += kLanes)
    product_columns<kThinRows, kVectors>(c + n, padded, a, b + n, padded, rows, depth, add, NoFetch());
}

// Rows [begin, end) of down and back: chains over inputs and over outputs.
void thin_rows(const ThinProducts& p, int64_t begin, int64_t end) {
  const auto multiply = [&](float* c, const float* values, int64_t width, const float* factor) {
    c += begin * p.padded;
    thin_product(c, {values + begin * width, width, 1}, factor, end - begin, width, p.padded, false);
    const FloatTag tag;
    const FloatVector scale = hn::Set(tag, p.scale);
    for (int64_t i = 0; i < (end - begin) * p.padded; i += kWidth) {
      const FloatVector scaled = hn::Mul(hn::LoadU(tag, c + i), scale);
      hn::StoreU(p.round_to_bf16 ? rounded_bf16(tag, scaled) : scaled, tag, c + i);
    }
  };
  multiply(p.down, p.x, p.inputs, p.a);
  multiply(p.back, p.grad_y, p.outputs, p.b);
}

// Rows [begin, end) of grad_b: chains over tokens.
void thin_grad_b(const ThinProducts& p, int64_t begin, int64_t end) {
  thin_product(p.grad_b + begin * p.padded, {p.grad_y + begin, 1, p.outputs}, p.down, end - begin, p.tokens,
               p.padded, true);
}

// Columns [begin, end) of grad_a: chains over tokens.
void thin_grad_a(const ThinProducts& p, int64_t begin, int64_t end) {
  const StridedRows back{p.back, 1, p.padded};
  int64_t k = begin;
  for (constexpr int64_t kColumns = kWideVectors * kWidth; k + kColumns <= end; k += kColumns)
    product_columns<kWideRows, kWideVectors>(p.grad_a + k, p.inputs, back, p.x + k, p.inputs, p.rank,
                                             p.tokens, true, NoFetch());
  for (; k < end; k += kLanes) {  // what is behind the last column is padded here
    const int64_t columns = std::min(kLanes, end - k);
    std::vector<float> x(static_cast<size_t>(p.tokens * kLanes)), c(static_cast<size_t>(p.rank * kLanes));
    for (int64_t t = 0; t < p.tokens; ++t)
      std::copy_n(p.x + t * p.inputs + k, columns, x.data() + t * kLanes);
    for (int64_t r = 0; r < p.rank; ++r)
      std::copy_n(p.grad_a + r * p.inputs + k, columns, c.data() + r * kLanes);
    product_columns<kThinRows, kVectors>(c.data(), kLanes, back, x.data(), kLanes, p.rank, p.tokens, true,
                                         NoFetch());
    for (int64_t r = 0; r < p.rank; ++r)
      std::copy_n(c.data() + r * kLanes, columns, p.grad_a + r * p.inputs + k);
  }
}

// Threads share tokens in the first two products and outputs or inputs in the others, never what is summed.
void run_thin_products(const ThinProducts& p) {
  constexpr int64_t kRowsAtOnce = 2 * kThinRows, kOutputsAtOnce = 4 * kThinRows, kInputsAtOnce = 4 * kLanes;
  const int64_t work = p.tokens * (p.inputs + p.outputs) * p.padded / 8;
  parallel_chunks(p.tokens, kRowsAtOnce, work, [&](int64_t begin, int64_t end) { thin_rows(p, begin, end); });
  const int64_t of_b = (p.outputs + kOutputsAtOnce - 1) / kOutputsAtOnce,
                of_a = (p.inputs + kInputsAtOnce - 1) / kInputsAtOnce;
  parallel_chunks(of_b + of_a, 1, work, [&](int64_t piece, int64_t) {
    if (piece < of_b)
      thin_grad_b(p, piece * kOutputsAtOnce, std::min(p.outputs, (piece + 1) * kOutputsAtOnce));
    else
      thin_grad_a(p, (piece - of_b) * kInputsAtOnce, std::min(p.inputs, (piece - of_b + 1) * kInputsAtOnce));
  });
}

void round_values(float* to, const float* from, int64_t count) {
  const FloatTag tag;
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth)
    hn::StoreU(rounded_bf16(tag, hn::LoadU(tag, from + i)), tag, to + i);
  for (; i < count; ++i) to[i] = bf16_to_float(float_to_bf16(from[i]));
}

void merge_to_f32(float* merged, const WeightView& stored, const LowRank& change) {
  merge_stored(merged, stored, change);
}
void merge_to_bf16(Bf16* merged, const WeightView& stored, const LowRank& change) {
  merge_stored(merged, stored, change);
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cassert>
#include <utility>

namespace ropd::kernels {

HWY_EXPORT(merge_to_f32);
HWY_EXPORT(merge_to_bf16);
HWY_EXPORT(run_thin_products);
HWY_EXPORT(round_values);

void merge_low_rank(std::span<float> merged, const WeightView& stored, const LowRank& change) {
  assert(change.rank > 0 && static_cast<int64_t>(merged.size()) == stored.rows * stored.columns);
  HWY_DYNAMIC_DISPATCH(merge_to_f32)(merged.data(), stored, change);
}

void merge_low_rank(std::span<Bf16> merged, const WeightView& stored, const LowRank& change) {
  assert(change.rank > 0 && static_cast<int64_t>(merged.size()) == stored.rows * stored.columns);
  HWY_DYNAMIC_DISPATCH(merge_to_bf16)(merged.data(), stored, change);
}

namespace {

// So many tokens go through all four products while the caches hold them.
constexpr int64_t kTokensAtOnce = 256;

// Memory given out piece by piece.
class Pieces {
 public:
  explicit Pieces(float* begin) : at_(begin) {}
  float* take(int64_t count) { return std::exchange(at_, at_ + count); }

 private:
  float* at_;
};

}  // namespace

void low_rank_grad(std::span<float> grad_a, std::span<float> grad_b, Buffer& scratch,
                   std::span<const float> grad_y, std::span<const float> x, const LowRank& change,
                   Precision precision) {
  const int64_t rank = change.rank, inputs = static_cast<int64_t>(grad_a.size()) / rank,
                outputs = static_cast<int64_t>(grad_b.size()) / rank,
                tokens = static_cast<int64_t>(x.size()) / inputs;
  assert(static_cast<int64_t>(grad_y.size()) == tokens * outputs);
  constexpr int64_t kLanes = 16;
  const int64_t padded = (rank + kLanes - 1) / kLanes * kLanes, most = std::min(tokens, kTokensAtOnce);
  const bool is_rounded = precision != Precision::f32, is_padded = padded != rank;
  scratch.resize(static_cast<size_t>((inputs + 2 * outputs + 2 * most) * padded +
                                     (is_rounded ? most * (inputs + outputs) : 0)));
  Pieces pieces(scratch.data());
  choose_instruction_set();
  const auto round = HWY_DYNAMIC_DISPATCH(round_values);
  const auto run = HWY_DYNAMIC_DISPATCH(run_thin_products);
  ThinProducts p{.inputs = inputs,
                 .outputs = outputs,
                 .rank = rank,
                 .padded = padded,
                 .scale = change.scale,
                 .round_to_bf16 = is_rounded};

  float* const a = pieces.take(inputs * padded);
  for (int64_t k = 0; k < inputs; ++k)
    for (int64_t r = 0; r < padded; ++r) a[k * padded + r] = r < rank ? change.a[r * inputs + k] : 0.0f;
  if (is_rounded) round(a, a, inputs * padded);
  p.a = a;

  float* const b = pieces.take(outputs * padded);
  const auto pad = [&](float* to, const float* from) {
    for (int64_t n = 0; n < outputs; ++n)
      for (int64_t r = 0; r < padded; ++r) to[n * padded + r] = r < rank ? from[n * rank + r] : 0.0f;
  };
  if (is_padded || is_rounded) pad(b, change.b);
  if (is_rounded) round(b, b, outputs * padded);
  p.b = is_padded || is_rounded ? b : change.b;
  p.grad_a = grad_a.data();
  p.grad_b = is_padded ? pieces.take(outputs * padded) : grad_b.data();
  if (is_padded) pad(p.grad_b, grad_b.data());

  p.down = pieces.take(most * padded);
  p.back = pieces.take(most * padded);
  float* const rounded = is_rounded ? pieces.take(most * (inputs + outputs)) : nullptr;
  for (int64_t t = 0; t < tokens; t += most) {
    p.tokens = std::min(most, tokens - t);
    p.x = x.data() + t * inputs;
    p.grad_y = grad_y.data() + t * outputs;
    if (is_rounded) {
      float* const rounded_y = rounded + p.tokens * inputs;
      parallel_chunks(p.tokens, 8, p.tokens * (inputs + outputs), [&](int64_t begin, int64_t end) {
        round(rounded + begin * inputs, p.x + begin * inputs, (end - begin) * inputs);
        round(rounded_y + begin * outputs, p.grad_y + begin * outputs, (end - begin) * outputs);
      });
      p.x = rounded;
      p.grad_y = rounded_y;
    }
    run(p);
  }
  if (is_padded)
    for (int64_t n = 0; n < outputs; ++n) std::copy_n(p.grad_b + n * padded, rank, grad_b.data() + n * rank);
}

}  // namespace ropd::kernels
#endif
