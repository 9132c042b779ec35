// Packing as in pair_packing.h by instructions of AVX-512 BF16: the same words, but numbers below 2^-126 become zeros,
// as which the product takes them. Call only where has_native_bf16(). Internal to kernels/.
#pragma once
#include "kernels/pair_packing.h"

namespace ropd::kernels {

void pack_native_rows(Bf16* to, const Product& product, int64_t row, int64_t rows, int64_t depth0,
                      int64_t depth);
void pack_native_panels(Bf16* to, const Product& product, int64_t panel_begin, int64_t panel_end,
                        int64_t depth0, int64_t depth, int64_t panel_depth);

}  // namespace ropd::kernels
