#include "model/merged_layer.h"

#include <gtest/gtest.h>

#include "support/adapters.h"
#include "support/naive_model.h"

namespace ropd::model {
namespace {

class MergedLayerTest : public testing::Test {
 protected:
  const Parameters base_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 1);
  const Adapter adapter_ = test::random_adapter(
      base_.config(), {.rank = 2, .targets = {"q_proj", "down_proj"}, .ranks = {}, .alphas = {}}, 2);
  const Weights weights_ = adapter_.on(base_.weights());
};

TEST_F(MergedLayerTest, HoldsWhatIsAdaptedAndLeavesTheRest) {
  MergedLayer merged;
  for (size_t i = 0; i < 2; ++i) {
    const LayerWeights& layer = merged.of(weights_.layers[i], Precision::f32);
    EXPECT_EQ(layer.k.stored.data, weights_.layers[i].k.stored.data);
    std::vector<float> expected(24 * 20);
    kernels::merge_low_rank(expected, weights_.layers[i].q.stored, weights_.layers[i].q.change);
    const auto* found = static_cast<const float*>(layer.q.stored.data);
    EXPECT_EQ(std::vector<float>(found, found + expected.size()), expected);
    EXPECT_FALSE(layer.q.needs_merge(Precision::f32, true));
  }
}

TEST_F(MergedLayerTest, OfProductsThatRoundToBf16HoldsItsMatricesRounded) {
  MergedLayer merged;
  const LayerWeights& layer = merged.of(weights_.layers[1], Precision::bf16);
  for (const auto& [found, from] :
       {std::pair(&layer.q, &weights_.layers[1].q), std::pair(&layer.down, &weights_.layers[1].down)}) {
    std::vector<float> merge(static_cast<size_t>(from->outputs() * from->inputs()));
    kernels::merge_low_rank(merge, from->stored, from->change);
    std::vector<Bf16> rounded;
    for (const float value : merge) rounded.push_back(float_to_bf16(value));
    ASSERT_EQ(found->stored.dtype, DType::bf16);
    const auto* values = static_cast<const Bf16*>(found->stored.data);
    EXPECT_EQ(std::vector<Bf16>(values, values + rounded.size()), rounded);
  }
}

TEST_F(MergedLayerTest, IsTheLayerItselfWhereNothingIsAdaptedOrCopiesArePacked) {
  MergedLayer merged;
  const Weights plain = base_.weights(), packed = pack_weights(weights_, Precision::bf16);
  EXPECT_EQ(&merged.of(plain.layers[0], Precision::f32), &plain.layers[0]);
  EXPECT_EQ(&merged.of(packed.layers[0], Precision::bf16), &packed.layers[0]);
  // Of another precision, or without what gradients need, the copies do not serve.
  EXPECT_NE(&merged.of(packed.layers[0], Precision::f32), &packed.layers[0]);
  EXPECT_NE(&merged.of(packed.layers[0], Precision::bf16, true), &packed.layers[0]);
}

}  // namespace
}  // namespace ropd::model
