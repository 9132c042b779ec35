#include "kernels/native_packing.h"

#include <algorithm>

#if defined(__x86_64__)
#include <hwy/base.h>

// g++ 12 takes the "any value" in its own intrinsics for a mistake.
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

HWY_PUSH_ATTRIBUTES("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")
namespace ropd::kernels {
namespace {

constexpr int64_t kSide = 16;              // words of a square
constexpr int64_t kSideDepth = 2 * kSide;  // values in a row of one

// Consecutive values as words, the first of each two in the upper half.
inline __m512i load_words(const float* p) {
  return _mm512_rol_epi32((__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(p + kSide), _mm512_loadu_ps(p)), 16);
}
inline __m512i load_words(const Bf16* p) { return _mm512_rol_epi32(_mm512_loadu_si512(p), 16); }

// Words of values side by side: `upper` and `lower` hold the halves of sixteen words each.
inline __m512i words_of(__m256i upper, __m256i lower) {
  return _mm512_or_si512(_mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16), _mm512_cvtepu16_epi32(lower));
}
inline __m512i words_of(__m512 upper, __m512 lower) {
  return words_of((__m256i)_mm512_cvtneps_pbh(upper), (__m256i)_mm512_cvtneps_pbh(lower));
}
inline __m512i load_words_of(const float* upper, const float* lower) {
  return words_of(_mm512_loadu_ps(upper), _mm512_loadu_ps(lower));
}
inline __m512i load_words_of(const Bf16* upper, const Bf16* lower) {
  return words_of(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(upper)),
                  _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lower)));
}

// Rows become columns: within quarters of 4 x 4 words, then of quarters.
inline void transpose(__m512i (&w)[kSide]) {
  __m512i t[kSide];
#pragma GCC unroll 8
  for (int64_t i = 0; i < kSide; i += 2) {
    t[i] = _mm512_unpacklo_epi32(w[i], w[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(w[i], w[i + 1]);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < kSide; i += 4) {
    w[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    w[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    w[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    w[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(w[i], w[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(w[i], w[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    w[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    w[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    w[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    w[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// Columns of `stride`, a power of two as a rule, have few places in the first-level cache; what comes of them is on its
// way to the second one.
template <class Stored>
void fetch(const Stored* p) {
  constexpr int64_t kAhead = 256 / sizeof(Stored);
  __builtin_prefetch(p + kAhead, 0, 2);
  if (sizeof(Stored) == 4) __builtin_prefetch(p + kAhead + 16, 0, 2);
}

// A panel whose columns, or whose rows, are stored one value behind the other.
template <class Stored>
void pack_columns(Bf16* to, const Stored* from, int64_t stride, int64_t depth) {
  for (int64_t k = 0; k < depth; k += kSideDepth)
    for (int64_t j = 0; j < kPairPanel; j += kSide) {
      __m512i square[kSide];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kSide; ++i) {
        const Stored* at = from + (j + i) * stride + k;
        fetch(at);
        square[i] = load_words(at);
      }
      transpose(square);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kSide; ++i)
        _mm512_storeu_si512(to + (k + 2 * i) * kPairPanel + 2 * j, square[i]);
    }
}
template <class Stored>
void pack_lines(Bf16* to, const Stored* from, int64_t stride, int64_t depth) {
  for (int64_t k = 0; k < depth; k += 2)
    for (int64_t j = 0; j < kPairPanel; j += kSide)
      _mm512_storeu_si512(to + k * kPairPanel + 2 * j,
                          load_words_of(from + k * stride + j, from + (k + 1) * stride + j));
}

template <class Stored>
void pack_panels(Bf16* to, const Product& p, int64_t panel_begin, int64_t panel_end, int64_t depth0,
                 int64_t depth, int64_t panel_depth) {
  const auto from = [&](int64_t panel, int64_t k) {
    return static_cast<const Stored*>(p.b) + (depth0 + k) * p.b_row_stride +
           panel * kPairPanel * p.b_column_stride;
  };
  const int64_t panel_size = panel_depth * kPairPanel;
  const bool has_lines = p.b_column_stride == 1;
  const int64_t packed = has_lines ? depth / 2 * 2 : depth / kSideDepth * kSideDepth;
  // A few lines at a time: memory is read in long runs.
  const int64_t at_once = has_lines ? 8 : std::max(packed, kSideDepth);
  for (int64_t k = 0; k < packed; k += at_once)
    for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
      Bf16* at = to + (panel - panel_begin) * panel_size + k * kPairPanel;
      const int64_t count = std::min(at_once, packed - k);
      if (has_lines)
        pack_lines(at, from(panel, k), p.b_row_stride, count);
      else
        pack_columns(at, from(panel, k), p.b_column_stride, count);
    }
  if (packed == panel_depth) return;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel)
    pack_pair_panels(to + (panel - panel_begin) * panel_size + packed * kPairPanel, p, panel, panel + 1,
                     depth0 + packed, depth - packed, panel_depth - packed);
}

}  // namespace

void pack_native_rows(Bf16* to, const Product& p, int64_t row, int64_t rows, int64_t depth0, int64_t depth) {
  const float* from = p.a + row * p.a_row_stride + depth0 * p.a_column_stride;
  const __mmask16 exist = static_cast<__mmask16>((1u << rows) - 1);
  int64_t k = 0;
  if (p.a_column_stride == 1)
    for (; k + kSideDepth <= depth; k += kSideDepth) {
      __m512i square[kSide];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kSide; ++i)  // rows behind the last one are filled with it
        square[i] = load_words(from + std::min(i, rows - 1) * p.a_row_stride + k);
      transpose(square);
      Bf16* at = to + k * rows;
      if (rows >= kSide / 2) {  // in order: what a store writes too much, the next one overwrites
#pragma GCC unroll 15
        for (int64_t i = 0; i + 1 < kSide; ++i) _mm512_storeu_si512(at + 2 * i * rows, square[i]);
        _mm512_mask_storeu_epi32(at + 2 * (kSide - 1) * rows, exist, square[kSide - 1]);
      } else {
#pragma GCC unroll 16
        for (int64_t i = 0; i < kSide; ++i) _mm512_mask_storeu_epi32(at + 2 * i * rows, exist, square[i]);
      }
    }
  else if (p.a_row_stride == 1)
    for (; k + 2 <= depth; k += 2) {
      const float* at = from + k * p.a_column_stride;
      _mm512_mask_storeu_epi32(
          to + k * rows, exist,
          words_of(_mm512_maskz_loadu_ps(exist, at), _mm512_maskz_loadu_ps(exist, at + p.a_column_stride)));
    }
  pack_pair_rows(to + k * rows, p, row, rows, depth0 + k, depth - k);
}

void pack_native_panels(Bf16* to, const Product& p, int64_t panel_begin, int64_t panel_end, int64_t depth0,
                        int64_t depth, int64_t panel_depth) {
  const bool is_plain = p.b_dtype != DType::f16 && (p.b_column_stride == 1 || p.b_row_stride == 1);
  const int64_t whole = is_plain ? std::clamp(p.n / kPairPanel, panel_begin, panel_end) : panel_begin;
  if (p.b_dtype == DType::f32)
    pack_panels<float>(to, p, panel_begin, whole, depth0, depth, panel_depth);
  else
    pack_panels<Bf16>(to, p, panel_begin, whole, depth0, depth, panel_depth);
  pack_pair_panels(to + (whole - panel_begin) * panel_depth * kPairPanel, p, whole, panel_end, depth0, depth,
                   panel_depth);
}

}  // namespace ropd::kernels
HWY_POP_ATTRIBUTES

#endif
