// Packing for dot products of bf16 pairs: values that follow each other in depth share a 32-bit word. The
// instruction adds the product of the upper halves first, so the first value is there and sums are chains in
// order of depth, as everywhere else. Where the depth ends early the lower half is +0 in A and -0 in B: their
// product -0 changes no sum, not even the sign of a zero. Internal to kernels/.
#pragma once
#include "kernels/product.h"

namespace ropd::kernels {

inline constexpr int64_t kPairPanel = 32;  // columns of B
inline constexpr int64_t kMaxPairRows = 12;
inline constexpr Bf16 kNoRow = 0, kNoColumn = 0x8000;  // behind an odd depth, in A and in B

// Rows [row, row + rows) of A, rows <= kMaxPairRows, as [depth / 2][rows] words. Value by value (native_packing.h is
// the fast one).
void pack_pair_rows(Bf16* to, const Product& product, int64_t row, int64_t rows, int64_t depth0,
                    int64_t depth);

// The same rows for matrix units: as [depth / kTileDepth][rows][kTileDepth / 2] words; what is behind the depth
// is kNoRow.
inline constexpr int64_t kTileDepth = 32;
void pack_tile_rows(Bf16* to, const Product& product, int64_t row, int64_t rows, int64_t depth0,
                    int64_t depth);

// Panels [panel_begin, panel_end) of B, each [panel_depth / 2][kPairPanel] words, panel_depth >= depth; what is
// behind the depth and columns behind the last one of B are kNoColumn.
void pack_pair_panels(Bf16* to, const Product& product, int64_t panel_begin, int64_t panel_end,
                      int64_t depth0, int64_t depth, int64_t panel_depth);

}  // namespace ropd::kernels
