#include "kernels/pair_packing.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pair_packing.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/instruction_sets.h"

#include "kernels/squares.h"

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

// Words of two values each, on the bf16 grid already.
HWY_INLINE SquareRow in_pairs(SquareRow first, SquareRow second) {
  return hn::BitCast(SquareTag(), paired(second, first));
}

// Twice kSquare values, one behind the other, as kSquare words.
HWY_INLINE SquareRow load_pairs(const float* p) {
  SquareRow even, odd;
  hn::LoadInterleaved2(SquareTag(), p, even, odd);
  return in_pairs(rounded_bf16(even), rounded_bf16(odd));
}
HWY_INLINE SquareRow load_pairs(const Bf16* p) {
  const auto words = hn::LoadU(SquareWords(), reinterpret_cast<const uint32_t*>(p));
  return hn::BitCast(SquareTag(), hn::Or(hn::ShiftLeft<16>(words), hn::ShiftRight<16>(words)));
}

HWY_INLINE void store_words(SquareRow words, Bf16* to) {
  hn::StoreU(words, SquareTag(), reinterpret_cast<float*>(to));
}

void pack_rows_of_tiles(Bf16* to, const Product& p, int64_t row, int64_t rows, int64_t depth0,
                        int64_t depth) {
  const float* from = p.a + row * p.a_row_stride + depth0 * p.a_column_stride;
  const auto place = [&](int64_t r, int64_t k) {
    return to + (k / kTileDepth * rows + r) * kTileDepth + k % kTileDepth;
  };
  int64_t k0 = 0;  // where whole squares end
  if (p.a_column_stride == 1) {
    k0 = depth / (2 * kSquare) * (2 * kSquare);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t k = 0; k < k0; k += 2 * kSquare)
        store_words(load_pairs(from + r * p.a_row_stride + k), place(r, k));
  } else if (p.a_row_stride == 1 && rows >= kSquare) {
    k0 = depth / (2 * kSquare) * (2 * kSquare);
    for (int64_t k = 0; k < k0; k += 2 * kSquare)
      for (int64_t r = 0; r < rows; r += kSquare) {
        const int64_t row0 = std::min(r, rows - kSquare);  // the last ones overlap
        const float* at = from + k * p.a_column_stride + row0;
        SquareRow square[kSquare];
#pragma GCC unroll 8
        for (int64_t i = 0; i < kSquare; ++i, at += 2 * p.a_column_stride)
          square[i] = in_pairs(rounded_bf16(load_wide(at)), rounded_bf16(load_wide(at + p.a_column_stride)));
        transpose(square);
#pragma GCC unroll 8
        for (int64_t i = 0; i < kSquare; ++i) store_words(square[i], place(row0 + i, k));
      }
  }
  const int64_t end = (depth + kTileDepth - 1) / kTileDepth * kTileDepth;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = k0; k < end; k += 2) {
      const auto value = [&](int64_t at) {
        return at < depth ? float_to_bf16(from[r * p.a_row_stride + at * p.a_column_stride]) : kNoRow;
      };
      place(r, k)[0] = value(k + 1);
      place(r, k)[1] = value(k);
    }
}

inline Bf16 stored_value(const Product& p, int64_t index) {
  if (p.b_dtype == DType::bf16) return static_cast<const Bf16*>(p.b)[index];
  if (p.b_dtype == DType::f16) return float_to_bf16(f16_to_float(static_cast<const uint16_t*>(p.b)[index]));
  return float_to_bf16(static_cast<const float*>(p.b)[index]);
}

// Rows [depth0, depth0 + depth) of one panel.
template <class Stored>
void copy_panel(Bf16* to, const Product& p, int64_t column0, int64_t depth0, int64_t depth) {
  const int64_t columns = std::min(kPairPanel, p.n - column0);
  const auto index = [&](int64_t k, int64_t j) {
    return (depth0 + k) * p.b_row_stride + (column0 + j) * p.b_column_stride;
  };
  const Stored* from = static_cast<const Stored*>(p.b);
  const auto load_rounded = [&](int64_t at) HWY_ATTR {
    const SquareRow values = load_wide(from + at);
    return sizeof(Stored) == 4 ? rounded_bf16(values) : values;
  };
  int64_t k = 0;
  if (columns == kPairPanel && p.b_dtype != DType::f16) {
    if (p.b_column_stride == 1) {
      for (; k + 2 <= depth; k += 2)
        for (int64_t j = 0; j < kPairPanel; j += kSquare)
          store_words(in_pairs(load_rounded(index(k, j)), load_rounded(index(k + 1, j))),
                      to + k * kPairPanel + 2 * j);
    } else if (p.b_row_stride == 1) {
      for (; k + 2 * kSquare <= depth; k += 2 * kSquare)
        for (int64_t j = 0; j < kPairPanel; j += kSquare) {
          SquareRow square[kSquare];
#pragma GCC unroll 8
          for (int64_t i = 0; i < kSquare; ++i) square[i] = load_pairs(from + index(k, j + i));
          transpose(square);
#pragma GCC unroll 8
          for (int64_t i = 0; i < kSquare; ++i) store_words(square[i], to + (k + 2 * i) * kPairPanel + 2 * j);
        }
    }
  }
  for (; k < depth; k += 2)
    for (int64_t j = 0; j < kPairPanel; ++j) {
      Bf16* pair = to + k * kPairPanel + 2 * j;
      pair[0] = j < columns && k + 1 < depth ? stored_value(p, index(k + 1, j)) : kNoColumn;
      pair[1] = j < columns ? stored_value(p, index(k, j)) : kNoColumn;
    }
}

void pack_panels(Bf16* to, const Product& p, int64_t panel_begin, int64_t panel_end, int64_t depth0,
                 int64_t depth, int64_t panel_depth) {
  // Where rows of B are consecutive a few of them are copied at a time: memory is read in long runs.
  const int64_t rows_at_once = p.b_column_stride == 1 ? 8 : depth;
  const int64_t panel_size = panel_depth * kPairPanel, used = (depth + 1) / 2 * 2 * kPairPanel;
  for (int64_t k = 0; k < depth; k += rows_at_once)
    for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
      Bf16* at = to + (panel - panel_begin) * panel_size + k * kPairPanel;
      const int64_t rows = std::min(rows_at_once, depth - k);
      if (p.b_dtype == DType::f32)
        copy_panel<float>(at, p, panel * kPairPanel, depth0 + k, rows);
      else
        copy_panel<Bf16>(at, p, panel * kPairPanel, depth0 + k, rows);
    }
  for (int64_t i = 0; i < panel_end - panel_begin; ++i)
    std::fill(to + i * panel_size + used, to + (i + 1) * panel_size, kNoColumn);
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ropd::kernels {
HWY_EXPORT(pack_rows_of_tiles);
HWY_EXPORT(pack_panels);
void pack_pair_rows(Bf16* to, const Product& p, int64_t row, int64_t rows, int64_t depth0, int64_t depth) {
  const float* from = p.a + row * p.a_row_stride + depth0 * p.a_column_stride;
  for (int64_t k = 0; k < depth; k += 2)
    for (int64_t r = 0; r < rows; ++r) {
      const float* at = from + r * p.a_row_stride + k * p.a_column_stride;
      to[k * rows + 2 * r] = k + 1 < depth ? float_to_bf16(at[p.a_column_stride]) : kNoRow;
      to[k * rows + 2 * r + 1] = float_to_bf16(at[0]);
    }
}
void pack_tile_rows(Bf16* to, const Product& product, int64_t row, int64_t rows, int64_t depth0,
                    int64_t depth) {
  HWY_DYNAMIC_DISPATCH(pack_rows_of_tiles)(to, product, row, rows, depth0, depth);
}
void pack_pair_panels(Bf16* to, const Product& product, int64_t panel_begin, int64_t panel_end,
                      int64_t depth0, int64_t depth, int64_t panel_depth) {
  HWY_DYNAMIC_DISPATCH(pack_panels)(to, product, panel_begin, panel_end, depth0, depth, panel_depth);
}
}  // namespace ropd::kernels
#endif
