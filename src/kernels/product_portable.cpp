// The portable register tile on Highway vectors: f32 chains, B in f32 or bf16, compiled for SSE4, AVX2 and
// AVX-512.
#include "kernels/product.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product_portable.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/product_blocks.h"

using Lanes = hn::ScalableTag<float>;
constexpr int64_t kLanes = HWY_MAX_BYTES / 4;

// Branch-free so that packing loops vectorise. NaN keeps its upper bits, made quiet.
inline float round_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return std::bit_cast<float>((is_nan ? bits | 0x400000u : rounded) & 0xffff0000u);
}

// A value of B as the panel keeps it; for bf16 panels it is on the bf16 grid already.
inline void put(float* to, float value) { *to = value; }
inline void put(Bf16* to, float value) { *to = static_cast<Bf16>(std::bit_cast<uint32_t>(value) >> 16); }

inline auto load_b(const float* p) { return hn::LoadU(Lanes(), p); }
inline auto load_b(const Bf16* p) {
  const hn::Rebind<uint16_t, Lanes> half;
  const hn::Rebind<uint32_t, Lanes> whole;
  return hn::BitCast(Lanes(), hn::ShiftLeft<16>(hn::PromoteTo(whole, hn::LoadU(half, p))));
}

struct PortableKernel {
  using AElement = float;
  static constexpr int64_t kRows = kLanes == 16 ? 12 : 6;  // accumulators: kRows x 2 of 32 or 16 registers
  static constexpr int64_t kPanel = 2 * kLanes;
  static constexpr int64_t kUnit = 1;

  static void pack_a(float* to, const Product& p, int64_t row, int64_t rows, int64_t depth0, int64_t depth) {
    const float* from = p.a + row * p.a_row_stride + depth0 * p.a_column_stride;
    if (p.a_row_stride == 1) {
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t r = 0; r < rows; ++r) to[k * rows + r] = from[k * p.a_column_stride + r];
    } else {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < depth; ++k)
          to[k * rows + r] = from[r * p.a_row_stride + k * p.a_column_stride];
    }
    if (p.round_to_bf16)
      for (int64_t i = 0; i < rows * depth; ++i) to[i] = round_bf16(to[i]);
  }

  template <class Stored, class BElement, class Convert>
  static void copy_b(BElement* to, const Product& p, int64_t column0, int64_t columns, int64_t depth0,
                     int64_t depth, Convert convert) {
    const Stored* from =
        static_cast<const Stored*>(p.b) + depth0 * p.b_row_stride + column0 * p.b_column_stride;
    if (columns == kPanel && p.b_column_stride == 1) {
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t j = 0; j < kPanel; ++j) put(to + k * kPanel + j, convert(from[k * p.b_row_stride + j]));
      return;
    }
    int64_t k = 0;
    if (columns == kPanel && p.b_row_stride == 1)
      // The transposing copy of W: four depths at a time keep four cache lines of the panel open for every
      // row of W.
      for (; k + 4 <= depth; k += 4)
        for (int64_t j = 0; j < kPanel; ++j)
          for (int64_t i = 0; i < 4; ++i)
            put(to + (k + i) * kPanel + j, convert(from[j * p.b_column_stride + k + i]));
    for (; k < depth; ++k) {
      for (int64_t j = 0; j < columns; ++j)
        put(to + k * kPanel + j, convert(from[k * p.b_row_stride + j * p.b_column_stride]));
      for (int64_t j = columns; j < kPanel; ++j) put(to + k * kPanel + j, 0.0f);
    }
  }

  template <class BElement>
  static void pack_b(BElement* to, const Product& p, int64_t panel, int64_t depth0, int64_t depth) {
    const int64_t column0 = panel * kPanel, columns = std::min(kPanel, p.n - column0);
    const auto copy = [&](auto stored, auto convert) HWY_ATTR {
      copy_b<decltype(stored)>(to, p, column0, columns, depth0, depth, convert);
    };
    if (p.b_dtype == DType::bf16)
      copy(Bf16{}, [](Bf16 v) HWY_ATTR { return bf16_to_float(v); });
    else if (p.b_dtype == DType::f16 && p.round_to_bf16)
      copy(uint16_t{}, [](uint16_t v) HWY_ATTR { return round_bf16(f16_to_float(v)); });
    else if (p.b_dtype == DType::f16)
      copy(uint16_t{}, [](uint16_t v) HWY_ATTR { return f16_to_float(v); });
    else if (p.round_to_bf16)
      copy(float{}, [](float v) HWY_ATTR { return round_bf16(v); });
    else
      copy(float{}, [](float v) HWY_ATTR { return v; });
  }

  template <int kTileRows, int kTilePanels, class BElement>
  static void fixed_tile(const float* HWY_RESTRICT a, const BElement* HWY_RESTRICT b, int64_t b_panel_stride,
                         int64_t depth, float* HWY_RESTRICT c, int64_t c_stride, bool add) {
    const Lanes lanes;
    constexpr int kVectors = 2 * kTilePanels;
    hn::Vec<Lanes> sum[kTileRows][kVectors];
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v)
        sum[r][v] = add ? hn::LoadU(lanes, c + r * c_stride + v * kLanes) : hn::Zero(lanes);
    for (int64_t k = 0; k < depth; ++k) {
      hn::Vec<Lanes> column[kVectors];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v)
        column[v] = load_b(b + (v / 2) * b_panel_stride + k * kPanel + (v % 2) * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) {
        const auto row = hn::Set(lanes, a[k * kTileRows + r]);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(row, column[v], sum[r][v]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], lanes, c + r * c_stride + v * kLanes);
  }

  template <int kTileRows, class BElement>
  static void tile_of_rows(int64_t rows, int64_t panels, const float* a, const BElement* b,
                           int64_t b_panel_stride, int64_t depth, float* c, int64_t c_stride, bool add) {
    if (rows != kTileRows) {
      if constexpr (kTileRows > 1)
        tile_of_rows<kTileRows - 1>(rows, panels, a, b, b_panel_stride, depth, c, c_stride, add);
      return;
    }
    if constexpr (kTileRows == 1) {
      if (panels == 4) return fixed_tile<1, 4>(a, b, b_panel_stride, depth, c, c_stride, add);
    }
    if constexpr (kTileRows <= 3) {
      if (panels >= 2) {
        fixed_tile<kTileRows, 2>(a, b, b_panel_stride, depth, c, c_stride, add);
        if (panels == 3)
          fixed_tile<kTileRows, 1>(a, b + 2 * b_panel_stride, b_panel_stride, depth, c + 2 * kPanel, c_stride,
                                   add);
        return;
      }
    }
    fixed_tile<kTileRows, 1>(a, b, b_panel_stride, depth, c, c_stride, add);
  }

  template <class BElement>
  static void tile(int64_t rows, int64_t panels, const float* a, const BElement* b, int64_t b_panel_stride,
                   int64_t depth, float* c, int64_t c_stride, bool add) {
    if (rows <= 3 || panels == 1)
      return tile_of_rows<kRows>(rows, panels, a, b, b_panel_stride, depth, c, c_stride, add);
    for (int64_t i = 0; i < panels; ++i)  // the last rows of a block, when earlier tiles of it were full
      tile_of_rows<kRows>(rows, 1, a, b + i * b_panel_stride, b_panel_stride, depth, c + i * kPanel, c_stride,
                          add);
  }
};

PanelLayout layout() { return {PortableKernel::kPanel, PortableKernel::kUnit}; }

void run_product(const Product& product) {
  if (product.panels && product.round_to_bf16)
    product_threads<PortableKernel, Bf16>(product);
  else
    product_threads<PortableKernel, float>(product);
}

template <class BElement>
void pack_all(BElement* to, const Product& product) {
  const int64_t panels = (product.n + PortableKernel::kPanel - 1) / PortableKernel::kPanel;
#pragma omp parallel for schedule(static)
  for (int64_t panel = 0; panel < panels; ++panel)
    PortableKernel::pack_b(to + panel * product.k * PortableKernel::kPanel, product, panel, 0, product.k);
}

void pack_panels(std::byte* to, const Product& product) {
  if (product.round_to_bf16)
    pack_all(reinterpret_cast<Bf16*>(to), product);
  else
    pack_all(reinterpret_cast<float*>(to), product);
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ropd::kernels {
HWY_EXPORT(layout);
HWY_EXPORT(run_product);
HWY_EXPORT(pack_panels);
PanelLayout portable_layout() { return HWY_DYNAMIC_DISPATCH(layout)(); }
void portable_product(const Product& product) { HWY_DYNAMIC_DISPATCH(run_product)(product); }
void portable_pack(std::byte* panels, const Product& product) {
  HWY_DYNAMIC_DISPATCH(pack_panels)(panels, product);
}
}  // namespace ropd::kernels
#endif
