// The small products inside attention and of low-rank changes, on register tiles:
//   C[m, n] (+)= sum_l A(m, l) B[l, n],   n in whole vectors, A with any strides, B in f32 or bf16
// Every element is one chain of fused multiply-adds in order of l, so the tiling never shows in a result.
// Included once per instruction set, after foreach_target.h (see lanes.h).
#if defined(ROPD_KERNELS_TILE_PRODUCT_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ROPD_KERNELS_TILE_PRODUCT_H
#undef ROPD_KERNELS_TILE_PRODUCT_H
#else
#define ROPD_KERNELS_TILE_PRODUCT_H
#endif

#include <cstddef>
#include <type_traits>

#include "kernels/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

struct StridedRows {
  const float* data;
  int64_t row_stride;    // between m and m + 1
  int64_t depth_stride;  // between l and l + 1
};

HWY_INLINE FloatVector load_widened(const float* p) { return hn::LoadU(FloatTag(), p); }
HWY_INLINE FloatVector load_widened(const Bf16* p) {
  const hn::Rebind<uint16_t, FloatTag> half;
  const hn::Rebind<uint32_t, FloatTag> whole;
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(whole, hn::LoadU(half, p))));
}

// B that is read once, from memory: for everything read the same place `distance` elements further on is
// fetched into the second-level cache. Spread over the arithmetic like this the requests never queue up in
// front of the loads. Into the first level a Zen 4 reads them at half of the speed, probably because that lets
// few lines be on their way.
struct FetchFurther {
  int64_t distance = 0;
};
// B that stays in the cache for many rows: meanwhile the block that comes after it is fetched into the
// second-level cache, some lines with every tile.
class BlockFetch {
 public:
  // `tiles`: about how many will call.
  BlockFetch(const void* begin, int64_t bytes, int64_t tiles)
      : at_(static_cast<const std::byte*>(begin)),
        end_(begin ? at_ + bytes : at_),
        bytes_each_((bytes / tiles / kLine + 1) * kLine) {}
  HWY_INLINE void fetch_some() {
    const std::byte* const until = at_ + std::min(bytes_each_, end_ - at_);
    for (; at_ < until; at_ += kLine) __builtin_prefetch(at_, 0, 2);
  }

 private:
  static constexpr int64_t kLine = 64;
  const std::byte* at_;
  const std::byte* end_;
  int64_t bytes_each_;
};
struct FetchNext {
  BlockFetch* block;
};
struct NoFetch {};
// Keys that together are smaller stay in the second-level cache by themselves.
inline constexpr int64_t kWorthFetching = int64_t{192} << 10;

// A value that several products use: without this the compiler reads it from memory again for each of them,
// and the loads take longer than the arithmetic.
HWY_INLINE void keep_in_register(FloatVector& x) {
#if HWY_TARGET == HWY_AVX2
  asm("" : "+x"(x.raw));
#else
  static_cast<void>(x);
#endif
}

// kRows x kVectors accumulators live in registers.
template <int kRows, int kVectors, class Element, class Fetch>
HWY_INLINE void product_tile(float* c, int64_t c_stride, const StridedRows& a, const Element* b,
                             int64_t b_stride, int64_t depth, bool add, Fetch fetch) {
  const FloatTag tag;
  if constexpr (std::is_same_v<Fetch, FetchNext>) fetch.block->fetch_some();
  FloatVector sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = add ? hn::LoadU(tag, c + r * c_stride + v * kWidth) : hn::Zero(tag);
  const float* a_data = a.data;
  for (int64_t l = 0; l < depth; ++l) {
    FloatVector columns[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = load_widened(b + v * kWidth);
      if constexpr (kRows > 1 && kRows * kVectors <= 8) keep_in_register(columns[v]);
    }
    if constexpr (std::is_same_v<Fetch, FetchFurther>) {
      constexpr int64_t kLine = 64 / sizeof(Element);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kVectors * kWidth; i += kLine) __builtin_prefetch(b + fetch.distance + i, 0, 2);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const FloatVector value = hn::Set(tag, a_data[r * a.row_stride]);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(value, columns[v], sums[r][v]);
    }
    a_data += a.depth_stride;
    b += b_stride;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], tag, c + r * c_stride + v * kWidth);
}

// All rows against kVectors vectors of columns, kRows at a time; of the last eight no two are left alone, in
// a tile too small to keep the multiply-add units busy.
template <int kRows, int kVectors, class Element, class Fetch>
void product_columns(float* c, int64_t c_stride, StridedRows a, const Element* b, int64_t b_stride,
                     int64_t rows, int64_t depth, bool add, Fetch fetch) {
  for (; rows >= kRows && !(kRows == 6 && rows == 8); rows -= kRows) {
    product_tile<kRows, kVectors>(c, c_stride, a, b, b_stride, depth, add, fetch);
    c += kRows * c_stride;
    a.data += kRows * a.row_stride;
  }
  if constexpr (kRows > 1) {
    if (rows > 0)
      product_columns<(kRows > 4 ? 4 : kRows / 2), kVectors>(c, c_stride, a, b, b_stride, rows, depth, add,
                                                             fetch);
  }
}

// The last columns, `vectors` < kLimit of them.
template <int kRows, int kLimit, class Element, class Fetch>
void product_rest(float* c, int64_t c_stride, const StridedRows& a, const Element* b, int64_t b_stride,
                  int64_t rows, int64_t vectors, int64_t depth, bool add, Fetch fetch) {
  if constexpr (kLimit > 1) {
    if (vectors == kLimit - 1)
      product_columns<kRows, kLimit - 1>(c, c_stride, a, b, b_stride, rows, depth, add, fetch);
    else
      product_rest<kRows, kLimit - 1>(c, c_stride, a, b, b_stride, rows, vectors, depth, add, fetch);
  }
}

// columns is a multiple of kWidth. Every tile has about as many sums as both multiply-add units need to be
// busy and as the registers hold: with few rows more columns go side by side, and with 16 registers three
// vectors at the end are one tile of four rows, not two tiles (one row at a time where there are no vectors).
template <class Element, class Fetch = NoFetch>
void product(float* c, int64_t c_stride, const StridedRows& a, const Element* b, int64_t b_stride,
             int64_t rows, int64_t columns, int64_t depth, bool add, Fetch fetch = {}) {
  constexpr int64_t kFew = 3;
  constexpr bool kManyRegisters = kWidth == kLanes;
  constexpr int kRows = kWidth >= 8   ? 6
                        : kWidth >= 4 ? 3
                                      : 1,
                kWideRows = kManyRegisters ? 6
                            : kWidth >= 8  ? 2
                                           : 1;
  constexpr int64_t kThree = kVectors == 2 ? 3 * kWidth : 0;
  int64_t n = 0;
  if (kManyRegisters || rows <= kFew) {
    for (; n + 2 * kLanes <= columns; n += 2 * kLanes)
      product_columns<kWideRows, 2 * kVectors>(c + n, c_stride, a, b + n, b_stride, rows, depth, add, fetch);
    if constexpr (kWidth >= 8)
      return product_rest<kWideRows, 2 * kVectors>(c + n, c_stride, a, b + n, b_stride, rows,
                                                   (columns - n) / kWidth, depth, add, fetch);
  }
  for (; n + kLanes <= columns && columns - n != kThree; n += kLanes)
    product_columns<kRows, kVectors>(c + n, c_stride, a, b + n, b_stride, rows, depth, add, fetch);
  if constexpr (kThree != 0)
    if (columns - n == kThree)
      return product_columns<4, 3>(c + n, c_stride, a, b + n, b_stride, rows, depth, add, fetch);
  for (int vector = 1; vector < kVectors && n < columns; ++vector, n += kWidth)
    product_columns<kRows, 1>(c + n, c_stride, a, b + n, b_stride, rows, depth, add, fetch);
}

// About how many tiles product() makes of so many elements.
HWY_INLINE int64_t num_tiles(int64_t rows, int64_t columns) {
  return (rows / 6 + 1) * (columns / kLanes + 1);
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
