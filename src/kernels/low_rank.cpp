#include "kernels/low_rank.h"

#include <cassert>

#include "base/parallel.h"

namespace ropd::kernels {
namespace {

void multiply(std::span<float> values, float scale) {
  const auto size = static_cast<int64_t>(values.size());
  parallel_chunks(size, 1 << 14, size, [&](int64_t begin, int64_t end) {
    float* const to = values.data();
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) to[i] *= scale;
  });
}

template <class Stored, class Widen>
void add_stored(std::span<float> merged, const Stored* stored, float scale, Widen widen) {
  const auto size = static_cast<int64_t>(merged.size());
  parallel_chunks(size, 1 << 14, size, [&](int64_t begin, int64_t end) {
    float* const to = merged.data();
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) to[i] = widen(stored[i]) + scale * to[i];
  });
}

}  // namespace

void merge_low_rank(std::span<float> merged, const WeightView& stored, const LowRank& change) {
  assert(change.rank > 0 && static_cast<int64_t>(merged.size()) == stored.rows * stored.columns);
  const WeightView a{change.a, DType::f32, change.rank, stored.columns};
  matmul_grad_x(merged, {change.b, static_cast<size_t>(stored.rows * change.rank)}, a, Precision::f32,
                Update::replace);
  switch (stored.dtype) {
    case DType::f32:
      return add_stored(merged, static_cast<const float*>(stored.data), change.scale,
                        [](float value) { return value; });
    case DType::bf16:
      return add_stored(merged, static_cast<const Bf16*>(stored.data), change.scale, bf16_to_float);
    case DType::f16:
      return add_stored(merged, static_cast<const uint16_t*>(stored.data), change.scale, f16_to_float);
  }
}

void low_rank_grad(std::span<float> grad_a, std::span<float> grad_b, Buffer& scratch,
                   std::span<const float> grad_y, std::span<const float> x, const LowRank& change,
                   Precision precision, std::span<const int64_t> sequence_begins) {
  const int64_t rank = change.rank, inputs = static_cast<int64_t>(grad_a.size()) / rank,
                outputs = static_cast<int64_t>(grad_b.size()) / rank,
                tokens = static_cast<int64_t>(x.size()) / inputs;
  assert(static_cast<int64_t>(grad_y.size()) == tokens * outputs);
  scratch.resize(static_cast<size_t>(tokens * rank));
  matmul(scratch, x, {change.a, DType::f32, rank, inputs}, precision);
  multiply(scratch, change.scale);
  matmul_grad_weight(grad_b, grad_y, scratch, outputs, rank, precision, sequence_begins);
  matmul_grad_x(scratch, grad_y, {change.b, DType::f32, outputs, rank}, precision, Update::replace);
  multiply(scratch, change.scale);
  matmul_grad_weight(grad_a, scratch, x, rank, inputs, precision, sequence_begins);
}

}  // namespace ropd::kernels
