#include "kernels/embedding.h"

#include <cassert>

#include "base/parallel.h"

namespace ropd::kernels {
namespace {

void widen_row(float* out, const WeightView& table, int64_t row) {
  const int64_t width = table.columns, begin = row * width;
  if (table.dtype == DType::f32) {
    std::copy_n(static_cast<const float*>(table.data) + begin, width, out);
    return;
  }
  const uint16_t* from = static_cast<const uint16_t*>(table.data) + begin;
  if (table.dtype == DType::bf16)
    for (int64_t i = 0; i < width; ++i) out[i] = bf16_to_float(from[i]);
  else
    for (int64_t i = 0; i < width; ++i) out[i] = f16_to_float(from[i]);
}

}  // namespace

void embedding(std::span<float> out, std::span<const int32_t> ids, const WeightView& table) {
  const int64_t tokens = static_cast<int64_t>(ids.size());
  assert(static_cast<int64_t>(out.size()) == tokens * table.columns);
  parallel_chunks(tokens, 16, tokens * table.columns, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int32_t id = ids[static_cast<size_t>(t)];
      assert(id >= 0 && id < table.rows);
      widen_row(out.data() + t * table.columns, table, id);
    }
  });
}

void embedding_grad(std::span<float> grad_table, std::span<const float> grad_out,
                    std::span<const int32_t> ids) {
  const int64_t tokens = static_cast<int64_t>(ids.size());
  if (tokens == 0) return;
  const int64_t width = static_cast<int64_t>(grad_out.size()) / tokens;
  // Each share owns the ids of one remainder and walks the tokens in order, so no row is shared and every sum
  // has one order.
  constexpr int64_t kShares = 16;
  parallel_chunks(kShares, 1, tokens * width, [&](int64_t share, int64_t) {
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t id = ids[static_cast<size_t>(t)];
      assert(id >= 0 && (id + 1) * width <= static_cast<int64_t>(grad_table.size()));
      if (id % kShares != share) continue;
      float* to = grad_table.data() + id * width;
      const float* from = grad_out.data() + t * width;
      for (int64_t i = 0; i < width; ++i) to[i] += from[i];
    }
  });
}

}  // namespace ropd::kernels
