// Products as matrix units compute them (product.h), on any processor: the same packed blocks as
// product_amx.cpp, multiplied by fused multiply-adds. Written to be right, not to be fast.
#include "kernels/pair_packing.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/large_allocations.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/instruction_sets.h"

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/product_blocks.h"

struct TilesKernel {
  using AElement = Bf16;
  static constexpr int64_t kRows = 12;
  static constexpr int64_t kPanel = kPairPanel;
  static constexpr int64_t kRowBlock = 72;
  static constexpr int64_t kUnit = kTileDepth;
  static constexpr bool kReadsRows = false;

  static void pack_a(Bf16* to, const Product& p, int64_t row, int64_t rows, int64_t depth0, int64_t depth) {
    pack_tile_rows(to, p, row, rows, depth0, depth);
  }
  static void pack_b(Bf16* to, const Product& p, int64_t panel_begin, int64_t panel_end, int64_t depth0,
                     int64_t depth) {
    pack_pair_panels(to, p, panel_begin, panel_end, depth0, depth, unit_depth<TilesKernel>(depth));
  }

  // One row of C: the earlier values of all pairs are one chain, the later ones another.
  static void row(int64_t a_stride, const Bf16* a, const Bf16* b, int64_t depth, float* c, bool add) {
    const hn::CappedTag<float, kPanel / 2> lanes;
    const hn::RebindToUnsigned<decltype(lanes)> words;
    constexpr int64_t kLanes = hn::MaxLanes(lanes), kVectors = kPanel / kLanes;
    const auto upper = hn::Set(words, 0xffff0000u);
    if (!add) std::fill_n(c, kPanel, 0.0f);
    for (int64_t k = 0; k < depth; k += kTileDepth, a += a_stride) {
      hn::Vec<decltype(lanes)> earlier[kVectors], later[kVectors];
      for (int64_t v = 0; v < kVectors; ++v) earlier[v] = later[v] = hn::Zero(lanes);
      for (int64_t i = 0; i < kTileDepth; i += 2, b += 2 * kPanel) {
        const auto a_earlier = hn::Set(lanes, bf16_to_float(a[i + 1])),
                   a_later = hn::Set(lanes, bf16_to_float(a[i]));
        for (int64_t v = 0; v < kVectors; ++v) {
          const auto pairs = hn::LoadU(words, reinterpret_cast<const uint32_t*>(b) + v * kLanes);
          earlier[v] = hn::MulAdd(a_earlier, hn::BitCast(lanes, hn::And(pairs, upper)), earlier[v]);
          later[v] = hn::MulAdd(a_later, hn::BitCast(lanes, hn::ShiftLeft<16>(pairs)), later[v]);
        }
      }
      for (int64_t v = 0; v < kVectors; ++v)
        hn::StoreU(hn::Add(hn::LoadU(lanes, c + v * kLanes), hn::Add(earlier[v], later[v])), lanes,
                   c + v * kLanes);
    }
  }

  static void tiles(int64_t tiles, int64_t rows, int64_t panels, const Bf16* a, int64_t, const Bf16* b,
                    int64_t b_panel_stride, int64_t depth, float* c, int64_t c_stride, bool add, FetchAhead) {
    for (int64_t i = 0; i < tiles; ++i, a += rows * depth)
      for (int64_t r = 0; r < rows; ++r, c += c_stride)
        for (int64_t panel = 0; panel < panels; ++panel)
          row(rows * kTileDepth, a + r * kTileDepth, b + panel * b_panel_stride, depth, c + panel * kPanel,
              add);
  }
};

void multiply_tiles(const Product& product) { product_threads<TilesKernel, Bf16>(product); }
void multiply_all_tiles(const Product* products, int64_t count) {
  products_threads<TilesKernel, Bf16>(products, count);
}
void pack_tile_panels(std::byte* to, const Product& product) {
  pack_all<TilesKernel>(reinterpret_cast<Bf16*>(to), product);
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ropd::kernels {
HWY_EXPORT(multiply_tiles);
HWY_EXPORT(multiply_all_tiles);
HWY_EXPORT(pack_tile_panels);
PanelLayout tiles_layout() { return {kPairPanel, kTileDepth}; }
void tiles_product(const Product& product) { HWY_DYNAMIC_DISPATCH(multiply_tiles)(product); }
void tiles_products(const Product* products, int64_t count) {
  HWY_DYNAMIC_DISPATCH(multiply_all_tiles)(products, count);
}
void tiles_pack(std::byte* panels, const Product& product) {
  HWY_DYNAMIC_DISPATCH(pack_tile_panels)(panels, product);
}
}  // namespace ropd::kernels
#endif
