// The block's numbers are tested against the oracle in forward_test.cpp; here is what only this unit knows.
#include "model/block.h"

#include <gtest/gtest.h>

#include "kernels/attention.h"
#include "model/gradients.h"
#include "support/naive_model.h"

namespace ropd::model {
namespace {

TEST(Block, TraceAndScratchAreAsLargeAsAnnounced) {
  const auto parameters = test::random_parameters(test::tiny_config(Architecture::qwen3), 1);
  const Weights weights = parameters.weights();
  const ModelConfig& c = weights.config;
  const auto rope = kernels::make_rope_table(16, kernels::rope_inverse_frequencies(c.head_dim, c.rope_theta));
  std::vector<int32_t> positions(16);
  for (int i = 0; i < 16; ++i) positions[i] = i;
  BlockTrace trace;
  BlockScratch scratch;
  Buffer x(16 * 20);
  x.fill(0.5f);
  block(x, trace, scratch, weights.layers[0], {c, rope, positions, Precision::f32},
        [](std::span<float> out, std::span<float>, std::span<const float> q, std::span<const float>,
           std::span<const float>) { std::copy(q.begin(), q.end(), out.begin()); });
  EXPECT_EQ(trace.bytes(), 16 * trace_bytes_per_token(c));
  EXPECT_EQ(scratch.bytes(), 16 * scratch_bytes_per_token(c, false));

  Gradients gradients(c);
  Buffer grad(16 * 20);
  grad.fill(0.1f);
  const std::vector<int64_t> begins = {0, 16};
  block_grad(grad, gradients.layer(0), trace, scratch, weights.layers[0],
             {c, rope, positions, Precision::f32}, begins);
  EXPECT_EQ(scratch.bytes(), 16 * scratch_bytes_per_token(c, true));
}

}  // namespace
}  // namespace ropd::model
