#include "model/weights.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "support/naive_model.h"

namespace ropd::model {
namespace {

using test::random_parameters;
using test::tiny_config;

TEST(ParameterLayout, IsWithoutGapsAndLeavesOutATiedHead) {
  const auto tied = parameter_layout(tiny_config(Architecture::qwen3, true));
  const auto untied = parameter_layout(tiny_config(Architecture::qwen3, false));
  EXPECT_EQ(tied.size() + 1, untied.size());
  int64_t offset = 0;
  for (const auto& slot : untied) {
    EXPECT_EQ(slot.offset, offset) << slot.name;
    offset += slot.size;
  }
  EXPECT_EQ(parameter_count(tiny_config(Architecture::qwen3, false)), offset);
}

TEST(Parameters, ViewsFollowChangesOfTheValues) {
  auto parameters = random_parameters(tiny_config(Architecture::qwen3), 1);
  const Weights weights = parameters.weights();
  const auto slot = std::find_if(parameters.slots().begin(), parameters.slots().end(), [](const auto& s) {
    return s.name == "model.layers.1.self_attn.k_proj.weight";
  });
  parameters.values()[slot->offset] = 42;
  EXPECT_EQ(*static_cast<const float*>(weights.layers[1].k.stored.data), 42);
  EXPECT_EQ(weights.layers[1].k.outputs(), 12);
  EXPECT_EQ(weights.layers[1].k.inputs(), 20);
}

TEST(CheckFinite, NamesTheMatrix) {
  auto parameters = random_parameters(tiny_config(Architecture::qwen2), 2);
  check_finite(parameters.weights(), "model");
  for (const auto& slot : parameters.slots())
    if (slot.name == "model.layers.0.mlp.down_proj.weight")
      parameters.values()[slot.offset + 5] = std::numeric_limits<float>::infinity();
  try {
    check_finite(parameters.weights(), "model");
    FAIL() << "infinity was accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "model: layer 0 down_proj holds NaN or infinity (damaged or diverged checkpoint?)");
  }
}

TEST(PackWeights, GivesTheSameProducts) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3_moe, false), 3);
  const Weights plain = parameters.weights(), packed = pack_weights(plain, Precision::bf16);
  const std::vector<float> x(20, 0.37f);
  std::vector<float> y(28), z(28);
  plain.layers[1].gate.apply(y, x, Precision::bf16);
  packed.layers[1].gate.apply(z, x, Precision::bf16);
  EXPECT_EQ(y, z);
  EXPECT_EQ(packed.layers[0].router.packed->precision(), Precision::f32);
}

}  // namespace
}  // namespace ropd::model
