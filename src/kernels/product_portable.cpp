// The portable register tile on Highway vectors: f32 chains, B in f32 or bf16, compiled for SSE4, AVX2 and
// AVX-512. A panel is two vectors wide. In a bf16 panel column j and column j of the second half lie in one
// 32-bit word, so that a shift and a mask make two vectors of them: as fast as reading f32.
#include "kernels/product.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/large_allocations.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product_portable.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/inner_loop.h"
#include "kernels/squares.h"

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

#include "kernels/product_blocks.h"

using Lanes = hn::ScalableTag<float>;
constexpr int64_t kLanes = hn::MaxLanes(Lanes());

// Branch-free so that packing loops vectorise. NaN keeps its upper bits, made quiet.
inline float round_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return std::bit_cast<float>((is_nan ? bits | 0x400000u : rounded) & 0xffff0000u);
}

// A row of a panel.
struct PanelRow {
  hn::Vec<Lanes> half[2];
};
HWY_INLINE PanelRow load_panel_row(const float* p) {
  return {{hn::LoadU(Lanes(), p), hn::LoadU(Lanes(), p + kLanes)}};
}
HWY_INLINE PanelRow load_panel_row(const Bf16* p) {
#if HWY_TARGET == HWY_AVX2  // the mask stays in memory: see inner_loop.h
  alignas(32) static constexpr uint32_t kUpper[kLanes] = {0xffff0000u, 0xffff0000u, 0xffff0000u, 0xffff0000u,
                                                          0xffff0000u, 0xffff0000u, 0xffff0000u, 0xffff0000u};
  decltype(hn::Vec<Lanes>::raw) first, second;
  asm volatile(
      "vmovdqu %[pairs], %[second]\n\t"
      "vpslld $16, %[second], %[first]\n\t"
      "vpand %[upper], %[second], %[second]"
      : [first] "=&x"(first), [second] "=&x"(second)
      : [pairs] "m"(*reinterpret_cast<const Bf16(*)[2 * kLanes]>(p)), [upper] "m"(kUpper));
  return {{hn::Vec<Lanes>{first}, hn::Vec<Lanes>{second}}};
#else
  const hn::RebindToUnsigned<Lanes> words;
  const auto pairs = hn::LoadU(words, reinterpret_cast<const uint32_t*>(p));
  return {{hn::BitCast(Lanes(), hn::ShiftLeft<16>(pairs)),
           hn::BitCast(Lanes(), hn::And(pairs, hn::Set(words, 0xffff0000u)))}};
#endif
}

// Column `column` of a row; for bf16 panels the value is on the bf16 grid already.
inline void put(float* row, int64_t column, float value) { row[column] = value; }
inline void put(Bf16* row, int64_t column, float value) {
  row[2 * (column % kLanes) + column / kLanes] = static_cast<Bf16>(std::bit_cast<uint32_t>(value) >> 16);
}

// Columns [column, column + kSquare) of a panel's row and the same ones of its second half.
HWY_INLINE void store_square_rows(float* row, int64_t column, SquareRow first, SquareRow second) {
  hn::StoreU(first, SquareTag(), row + column);
  hn::StoreU(second, SquareTag(), row + kLanes + column);
}
HWY_INLINE void store_square_rows(Bf16* row, int64_t column, SquareRow first, SquareRow second) {
  hn::StoreU(paired(first, second), SquareWords(), reinterpret_cast<uint32_t*>(row) + column);
}

struct PortableKernel {
  using AElement = float;
  static constexpr int64_t kRows = kLanes == 16 ? 12 : 6;  // accumulators: kRows x 2 of 32 or 16 registers
  static constexpr int64_t kPanel = 2 * kLanes;
  static constexpr int64_t kRowBlock = 72;
  static constexpr int64_t kUnit = 1;

  static void pack_a(float* to, const Product& p, int64_t row, int64_t rows, int64_t depth0, int64_t depth) {
    const float* from = p.a + row * p.a_row_stride + depth0 * p.a_column_stride;
    const bool is_copy = rows == 1 && p.a_column_stride == 1;  // one sequence that is decoded
    if (is_copy || p.a_row_stride == 1) {
      if (is_copy)
        std::memcpy(to, from, static_cast<size_t>(depth) * sizeof(float));
      else if (rows == kRows)
        for (int64_t k = 0; k < depth; ++k)
          std::memcpy(to + k * kRows, from + k * p.a_column_stride, kRows * sizeof(float));
      else
        for (int64_t k = 0; k < depth; ++k)
          for (int64_t r = 0; r < rows; ++r) to[k * rows + r] = from[k * p.a_column_stride + r];
      if (p.round_to_bf16) {
        int64_t i = 0;
        for (; i + kSquare <= rows * depth; i += kSquare)
          hn::StoreU(rounded_bf16(hn::LoadU(SquareTag(), to + i)), SquareTag(), to + i);
        for (; i < rows * depth; ++i) to[i] = round_bf16(to[i]);
      }
      return;
    }
    constexpr int64_t kGroups = (kRows + kSquare - 1) / kSquare;
    const int64_t groups = (rows + kSquare - 1) / kSquare;
    int64_t k = 0;
    for (; k + kSquare <= depth; k += kSquare) {
      SquareRow square[kGroups][kSquare];
      for (int64_t g = 0; g < groups; ++g) {
#pragma GCC unroll 8
        for (int64_t i = 0; i < kSquare; ++i) {  // rows behind the last one are filled with it
          const int64_t r = std::min(g * kSquare + i, rows - 1);
          square[g][i] = hn::LoadU(SquareTag(), from + r * p.a_row_stride + k);
          if (p.round_to_bf16) square[g][i] = rounded_bf16(square[g][i]);
        }
        transpose(square[g]);
      }
      store_columns(square, rows, to + k * rows, k + 2 * kSquare > depth);
    }
    for (; k < depth; ++k)
      for (int64_t r = 0; r < rows; ++r) {
        const float value = from[r * p.a_row_stride + k];
        to[k * rows + r] = p.round_to_bf16 ? round_bf16(value) : value;
      }
  }

  // Twice kSquare rows of a stored matrix become columns [column, column + kSquare) of both halves of a
  // panel.
  template <class Stored, class BElement>
  static HWY_INLINE void copy_squares(BElement* to, int64_t column, const Stored* from, const Product& p) {
    SquareRow square[2][kSquare];
#pragma GCC unroll 2
    for (int64_t half = 0; half < 2; ++half) {
#pragma GCC unroll 8
      for (int64_t i = 0; i < kSquare; ++i) {
        square[half][i] = load_wide(from + (half * kLanes + i) * p.b_column_stride);
        if (sizeof(Stored) == 4 && p.round_to_bf16) square[half][i] = rounded_bf16(square[half][i]);
      }
      transpose(square[half]);
    }
#pragma GCC unroll 8
    for (int64_t i = 0; i < kSquare; ++i)
      store_square_rows(to + i * kPanel, column, square[0][i], square[1][i]);
  }

  // Consecutive stored values become a row of a panel.
  template <class Stored, class BElement>
  static HWY_INLINE void copy_row(BElement* to, const Stored* from, const Product& p) {
#pragma GCC unroll 2
    for (int64_t column = 0; column < kLanes; column += kSquare) {
      SquareRow half[2];
#pragma GCC unroll 2
      for (int64_t i = 0; i < 2; ++i) {
        half[i] = load_wide(from + i * kLanes + column);
        if (sizeof(Stored) == 4 && p.round_to_bf16) half[i] = rounded_bf16(half[i]);
      }
      store_square_rows(to, column, half[0], half[1]);
    }
  }

  static float stored_value(const Product& p, int64_t index) {
    const float value = p.b_dtype == DType::bf16  ? bf16_to_float(static_cast<const Bf16*>(p.b)[index])
                        : p.b_dtype == DType::f16 ? f16_to_float(static_cast<const uint16_t*>(p.b)[index])
                                                  : static_cast<const float*>(p.b)[index];
    return p.round_to_bf16 ? round_bf16(value) : value;
  }

  // Rows [depth0, depth0 + depth) of one panel, of which B has `columns` columns, the other ones are zero.
  template <class Stored, class BElement>
  static void copy_panel(BElement* to, const Product& p, int64_t column0, int64_t depth0, int64_t depth) {
    const int64_t columns = std::min(kPanel, p.n - column0);
    const auto index = [&](int64_t k, int64_t j) {
      return (depth0 + k) * p.b_row_stride + (column0 + j) * p.b_column_stride;
    };
    const Stored* from = static_cast<const Stored*>(p.b) + index(0, 0);
    int64_t k = 0;
    if (columns == kPanel && p.b_dtype != DType::f16) {
      if (p.b_column_stride == 1)
        for (; k < depth; ++k) copy_row(to + k * kPanel, from + k * p.b_row_stride, p);
      else if (p.b_row_stride == 1)
        for (; k + kSquare <= depth;) {
          const int64_t end = k + std::min(kLineOf<Stored>, (depth - k) / kSquare * kSquare);
          for (int64_t j = 0; j < kLanes; j += kSquare) {
            const Stored* column = from + j * p.b_column_stride;
            fetch_columns(column, k, depth, p.b_column_stride, kPanel);
            fetch_columns(column + kLanes * p.b_column_stride, k, depth, p.b_column_stride, kPanel);
            for (int64_t l = k; l < end; l += kSquare) copy_squares(to + l * kPanel, j, column + l, p);
          }
          k = end;
        }
    }
    for (; k < depth; ++k) {
      for (int64_t j = 0; j < columns; ++j) put(to + k * kPanel, j, stored_value(p, index(k, j)));
      for (int64_t j = columns; j < kPanel; ++j) put(to + k * kPanel, j, 0.0f);
    }
  }

  template <class BElement>
  static void pack_b(BElement* to, const Product& p, int64_t panel_begin, int64_t panel_end, int64_t depth0,
                     int64_t depth) {
    // Where rows of B are consecutive a few of them are copied at a time: memory is read in long runs.
    const int64_t rows_at_once = p.b_column_stride == 1 ? 8 : depth;
    for (int64_t k = 0; k < depth; k += rows_at_once)
      for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
        BElement* at = to + ((panel - panel_begin) * depth + k) * kPanel;
        const int64_t rows = std::min(rows_at_once, depth - k);
        if (p.b_dtype == DType::f32)
          copy_panel<float>(at, p, panel * kPanel, depth0 + k, rows);
        else
          copy_panel<uint16_t>(at, p, panel * kPanel, depth0 + k, rows);
      }
  }

  static constexpr bool kReadsRows = true;

  // a_stride is used for rows in place only.
  template <int kTileRows, int kTilePanels, bool kInPlace, class BElement, int kStep = FetchAhead::kDepth>
  static HWY_INLINE void fixed_tile(const float* HWY_RESTRICT a, int64_t a_stride,
                                    const BElement* HWY_RESTRICT b, int64_t b_panel_stride, int64_t depth,
                                    float* HWY_RESTRICT c, int64_t c_stride, bool add, FetchAhead ahead) {
    const Lanes lanes;
    constexpr int kVectors = 2 * kTilePanels;
    hn::Vec<Lanes> sum[kTileRows][kVectors];
    const float* row[kTileRows];
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      row[r] = a + (kInPlace ? r * a_stride : 0);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v)
        sum[r][v] = add ? hn::LoadU(lanes, c + r * c_stride + v * kLanes) : hn::Zero(lanes);
    }
    constexpr int kNextInRow = kInPlace ? 1 : kTileRows, kNextRow = kInPlace ? 0 : 1;
    int64_t at = 0;  // in row[r]
    for (int64_t k = depth / kStep; k > 0; --k) {
      if constexpr (kStep > 1) ahead.fetch<kTileRows>();
#pragma GCC unroll 16
      for (int step = 0; step < kStep; ++step) {
        PanelRow column[kTilePanels];
#pragma GCC unroll 16
        for (int i = 0; i < kTilePanels; ++i)
          column[i] = load_panel_row(b + i * b_panel_stride + step * kPanel);
#pragma GCC unroll 16
        for (int r = 0; r < kTileRows; ++r) {
          const auto value = in_all_lanes(row[r][at + step * kNextInRow + r * kNextRow]);
#pragma GCC unroll 16
          for (int v = 0; v < kVectors; ++v) multiply_add(sum[r][v], value, column[v / 2].half[v % 2]);
        }
      }
      at += kStep * kNextInRow;
      b += kStep * kPanel;
      keep_index(at);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], lanes, c + r * c_stride + v * kLanes);
    if (kStep > 1 && depth % kStep != 0)
      fixed_tile<kTileRows, kTilePanels, kInPlace, BElement, 1>(a + at, a_stride, b, b_panel_stride,
                                                                depth % kStep, c, c_stride, true, ahead);
  }

  template <int kTileRows, int kTilePanels, bool kInPlace, class BElement>
  static void fixed_tiles(int64_t tiles, const float* a, int64_t a_stride, const BElement* b,
                          int64_t b_panel_stride, int64_t depth, float* c, int64_t c_stride, bool add,
                          FetchAhead ahead) {
    for (; tiles > 0; --tiles) {
      if (tiles > 1)  // the C of the next tile, on its way while this one is computed
#pragma GCC unroll 16
        for (int r = 0; r < kTileRows; ++r) __builtin_prefetch(c + (kTileRows + r) * c_stride, 1, 3);
      fixed_tile<kTileRows, kTilePanels, kInPlace>(a, a_stride, b, b_panel_stride, depth, c, c_stride, add,
                                                   ahead);
      a += kTileRows * (kInPlace ? a_stride : depth);
      c += kTileRows * c_stride;
      ahead.pass(depth);
    }
  }

  template <class BElement>
  using Tiles = void (*)(int64_t, const float*, int64_t, const BElement*, int64_t, int64_t, float*, int64_t,
                         bool, FetchAhead);

  // Two rows go with two panels and one row with four.
  template <bool kInPlace, class BElement, int... kRow>
  static void tiles_of_rows(std::integer_sequence<int, kRow...>, int64_t tiles, int64_t rows, int64_t panels,
                            const float* a, int64_t a_stride, const BElement* b, int64_t b_panel_stride,
                            int64_t depth, float* c, int64_t c_stride, bool add, FetchAhead ahead) {
    static constexpr Tiles<BElement> one[] = {fixed_tiles<kRow + 1, 1, kInPlace, BElement>...};
    static constexpr Tiles<BElement> two[] = {fixed_tiles<1, 2, kInPlace, BElement>,
                                              fixed_tiles<2, 2, kInPlace, BElement>};
    if (rows == 1 && panels == 4)
      return fixed_tiles<1, 4, kInPlace>(tiles, a, a_stride, b, b_panel_stride, depth, c, c_stride, add,
                                         ahead);
    int64_t i = 0;
    if (rows <= 2)
      for (; i + 2 <= panels; i += 2)
        two[rows - 1](tiles, a, a_stride, b + i * b_panel_stride, b_panel_stride, depth, c + i * kPanel,
                      c_stride, add, ahead);
    for (; i < panels; ++i)
      one[rows - 1](tiles, a, a_stride, b + i * b_panel_stride, b_panel_stride, depth, c + i * kPanel,
                    c_stride, add, ahead);
  }

  template <class BElement>
  static void tiles(int64_t tiles, int64_t rows, int64_t panels, const float* a, int64_t a_stride,
                    const BElement* b, int64_t b_panel_stride, int64_t depth, float* c, int64_t c_stride,
                    bool add, FetchAhead ahead) {
    constexpr auto all_rows = std::make_integer_sequence<int, kRows>();
    if constexpr (sizeof(BElement) == 4) {
      if (a_stride != 0)
        return tiles_of_rows<true>(all_rows, tiles, rows, panels, a, a_stride, b, b_panel_stride, depth, c,
                                   c_stride, add, ahead);
    }
    tiles_of_rows<false>(all_rows, tiles, rows, panels, a, a_stride, b, b_panel_stride, depth, c, c_stride,
                         add, ahead);
  }
};

PanelLayout layout() { return {PortableKernel::kPanel, PortableKernel::kUnit}; }

void run_product(const Product& product) {
  if (product.round_to_bf16)
    product_threads<PortableKernel, Bf16>(product);
  else
    product_threads<PortableKernel, float>(product);
}

void run_products(const Product* products, int64_t count) {
  if (products[0].round_to_bf16)
    products_threads<PortableKernel, Bf16>(products, count);
  else
    products_threads<PortableKernel, float>(products, count);
}

void pack_panels(std::byte* to, const Product& product) {
  if (product.round_to_bf16)
    pack_all<PortableKernel>(reinterpret_cast<Bf16*>(to), product);
  else
    pack_all<PortableKernel>(reinterpret_cast<float*>(to), product);
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ropd::kernels {
HWY_EXPORT(layout);
HWY_EXPORT(run_product);
HWY_EXPORT(run_products);
HWY_EXPORT(pack_panels);
PanelLayout portable_layout() { return HWY_DYNAMIC_DISPATCH(layout)(); }
void portable_product(const Product& product) { HWY_DYNAMIC_DISPATCH(run_product)(product); }
void portable_products(const Product* products, int64_t count) {
  HWY_DYNAMIC_DISPATCH(run_products)(products, count);
}
void portable_pack(std::byte* panels, const Product& product) {
  HWY_DYNAMIC_DISPATCH(pack_panels)(panels, product);
}
}  // namespace ropd::kernels
#endif
