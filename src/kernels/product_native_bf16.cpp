// bf16 dot products of AVX-512 BF16: one instruction adds two products a lane, with two roundings as two
// fused multiply-adds have, the upper halves of the pairs first. Only the code between the two
// attribute lines is compiled for that instruction set (not the headers above it, whose inline functions the
// whole program shares), and it is called only where has_native_bf16() says so.
#include "kernels/native_packing.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/large_allocations.h"
#include "base/parallel.h"

#if defined(__x86_64__)
#include <hwy/base.h>
#include <immintrin.h>

HWY_PUSH_ATTRIBUTES("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")
namespace ropd::kernels {
namespace native {

#include "kernels/product_blocks.h"

struct NativeKernel {
  using AElement = Bf16;
  static constexpr int64_t kRows = kMaxPairRows;
  static constexpr int64_t kPanel = kPairPanel;
  static constexpr int64_t kRowBlock = 72;
  static constexpr int64_t kUnit = 2;
  static constexpr bool kReadsRows = false;  // A is rounded while it is packed

  static void pack_a(Bf16* to, const Product& p, int64_t row, int64_t rows, int64_t depth0, int64_t depth) {
    pack_native_rows(to, p, row, rows, depth0, depth);
  }
  static void pack_b(Bf16* to, const Product& p, int64_t panel_begin, int64_t panel_end, int64_t depth0,
                     int64_t depth) {
    pack_native_panels(to, p, panel_begin, panel_end, depth0, depth, unit_depth<NativeKernel>(depth));
  }

  template <int kTileRows, int kTilePanels>
  static void fixed_tile(const Bf16* a, const Bf16* b, int64_t b_panel_stride, int64_t depth, float* c,
                         int64_t c_stride, bool add, FetchAhead ahead) {
    constexpr int kVectors = 2 * kTilePanels;
    __m512 sum[kTileRows][kVectors];
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v)
        sum[r][v] = add ? _mm512_loadu_ps(c + r * c_stride + v * 16) : _mm512_setzero_ps();
    for (int64_t k = 0; k < depth; k += 2) {
      if (k % FetchAhead::kDepth == 0) ahead.fetch<kTileRows>();
      __m512bh column[kVectors];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v)
        column[v] = (__m512bh)_mm512_loadu_si512(b + (v / 2) * b_panel_stride + k * kPanel + (v % 2) * 32);
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) {
        int32_t pair;
        std::memcpy(&pair, a + k * kTileRows + 2 * r, 4);
        const __m512bh row = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], row, column[v]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(c + r * c_stride + v * 16, sum[r][v]);
  }

  template <int kTileRows>
  static void tile_of_rows(int64_t rows, int64_t panels, const Bf16* a, const Bf16* b, int64_t b_panel_stride,
                           int64_t depth, float* c, int64_t c_stride, bool add, FetchAhead ahead) {
    if (rows != kTileRows) {
      if constexpr (kTileRows > 1)
        tile_of_rows<kTileRows - 1>(rows, panels, a, b, b_panel_stride, depth, c, c_stride, add, ahead);
      return;
    }
    if constexpr (kTileRows == 1) {
      if (panels == 4) return fixed_tile<1, 4>(a, b, b_panel_stride, depth, c, c_stride, add, ahead);
    }
    for (int64_t i = 0; i < panels; ++i)
      fixed_tile<kTileRows, 1>(a, b + i * b_panel_stride, b_panel_stride, depth, c + i * kPanel, c_stride,
                               add, ahead);
  }

  static void tiles(int64_t tiles, int64_t rows, int64_t panels, const Bf16* a, int64_t, const Bf16* b,
                    int64_t b_panel_stride, int64_t depth, float* c, int64_t c_stride, bool add,
                    FetchAhead ahead) {
    for (; tiles > 0; --tiles) {
      if (tiles > 1)  // the C of the next tile, on its way while this one is computed
        for (int64_t r = 0; r < rows; ++r) __builtin_prefetch(c + (rows + r) * c_stride, 1, 3);
      tile_of_rows<kRows>(rows, panels, a, b, b_panel_stride, depth, c, c_stride, add, ahead);
      a += rows * depth;
      c += rows * c_stride;
      ahead.pass(depth);
    }
  }
};

// One pair (first, second) · (first, second) added to c.
float dot_pair(float c, Bf16 a_first, Bf16 a_second, Bf16 b_first, Bf16 b_second) {
  const __m512i a = _mm512_set1_epi32(a_first << 16 | a_second),
                b = _mm512_set1_epi32(b_first << 16 | b_second);
  return _mm512_cvtss_f32(_mm512_dpbf16_ps(_mm512_set1_ps(c), (__m512bh)a, (__m512bh)b));
}

// Whether a dot product is two fused multiply-adds in order: every other way to add (second before first,
// both products before c, one rounding for all) gets one of these trials wrong.
bool adds_in_order() {
  const Bf16 one = float_to_bf16(1), small = float_to_bf16(0x1p-12f), large = float_to_bf16(0x1p12f),
             minus_large = float_to_bf16(-0x1p12f), tiny = float_to_bf16(0x1p-24f);
  return dot_pair(0x1p24f, small, large, small, minus_large) == 0.0f &&   // (2^24 + 2^-24) - 2^24
         dot_pair(0x1p-24f, large, minus_large, large, large) == 0.0f &&  // (2^-24 + 2^24) - 2^24
         dot_pair(1.0f, small, small, small, small) == 1.0f &&            // (1 + 2^-24) + 2^-24
         dot_pair(-0x1p24f, large, one, large, tiny) == 0x1p-24f;         // (-2^24 + 2^24) + 2^-24
}

}  // namespace native

void native_bf16_product(const Product& product) {
  native::product_threads<native::NativeKernel, Bf16>(product);
}

void native_bf16_products(const Product* products, int64_t count) {
  native::products_threads<native::NativeKernel, Bf16>(products, count);
}

double native_bf16_burst(int64_t rounds, float* sink) {
  constexpr int kChains = 12;  // hide the latency
  __m512 sum[kChains];
  const __m512bh factor = (__m512bh)_mm512_set1_epi32(0x3f803f00);
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = _mm512_dpbf16_ps(sum[i], factor, factor);
  __m512 total = sum[0];
#pragma GCC unroll 12
  for (int i = 1; i < kChains; ++i) total = _mm512_add_ps(total, sum[i]);
  *sink = _mm512_cvtss_f32(total);
  return static_cast<double>(rounds) * kChains * 16 * 4;
}

void native_bf16_pack(std::byte* to, const Product& product) {
  native::pack_all<native::NativeKernel>(reinterpret_cast<Bf16*>(to), product);
}

}  // namespace ropd::kernels
HWY_POP_ATTRIBUTES

namespace ropd::kernels {

bool has_native_bf16() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bf16") && native::adds_in_order();
  return has;
}

bool prefers_native_bf16() {
  static const bool is_amd = __builtin_cpu_is("amd");
  return is_amd && has_native_bf16();
}

PanelLayout native_bf16_layout() { return {native::NativeKernel::kPanel, native::NativeKernel::kUnit}; }

}  // namespace ropd::kernels

#else  // another processor family: the portable kernels serve bf16 too

#include "base/error.h"

namespace ropd::kernels {
bool has_native_bf16() { return false; }
bool prefers_native_bf16() { return false; }
PanelLayout native_bf16_layout() { fail("native bf16 products are not built for this processor family"); }
void native_bf16_product(const Product&) { native_bf16_layout(); }
void native_bf16_products(const Product*, int64_t) { native_bf16_layout(); }
void native_bf16_pack(std::byte*, const Product&) { native_bf16_layout(); }
double native_bf16_burst(int64_t, float*) { return static_cast<double>(native_bf16_layout().columns); }
}  // namespace ropd::kernels

#endif
