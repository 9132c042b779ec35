// Packing for dot products of bf16 pairs: values that follow each other in depth share a 32-bit word. The
// instruction adds the product of the upper halves first, so the first value is there and sums are chains in
// order of depth, as everywhere else. Where the depth ends early the lower half is +0 in A and -0 in B: their
// product -0 changes no sum, not even the sign of a zero. Internal to kernels/.
#pragma once
#include "kernels/product.h"

namespace ropd::kernels {

inline constexpr int64_t kPairPanel = 32;  // columns of B
inline constexpr int64_t kMaxPairRows = 12;
inline constexpr int64_t kPairSlack = 8;
inline constexpr Bf16 kNoRow = 0, kNoColumn = 0x8000;  // behind an odd depth, in A and in B

// Rows [row, row + rows) of A, rows <= kMaxPairRows, as [depth / 2][rows] words; may write kPairSlack words
// too many.
void pack_pair_rows(Bf16* to, const Product& product, int64_t row, int64_t rows, int64_t depth0,
                    int64_t depth);

// Panels [panel_begin, panel_end) of B, each [depth / 2][kPairPanel] words; columns behind the last one of B
// are -0.
void pack_pair_panels(Bf16* to, const Product& product, int64_t panel_begin, int64_t panel_end,
                      int64_t depth0, int64_t depth);

}  // namespace ropd::kernels
