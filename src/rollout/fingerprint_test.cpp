#include "rollout/fingerprint.h"

#include <gtest/gtest.h>

#include "support/model_files.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::rollout {
namespace {

TEST(WeightsFingerprint, FollowsTheValues) {
  auto parameters = test::random_parameters(test::tiny_config(Architecture::qwen3_moe), 3);
  const std::string before = weights_fingerprint(parameters.weights());
  EXPECT_EQ(before.size(), 64u);
  EXPECT_EQ(weights_fingerprint(parameters.weights()), before);
  for (const auto& slot : parameters.slots()) {
    float& value = parameters.values()[static_cast<size_t>(slot.offset)];
    const float old = value;
    value += 0.125f;
    EXPECT_NE(weights_fingerprint(parameters.weights()), before) << slot.name;
    value = old;
  }
  EXPECT_EQ(weights_fingerprint(parameters.weights()), before);
}

TEST(WeightsFingerprint, IsTheSameForStoredAndWidenedWeights) {
  const test::TemporaryDirectory directory;
  test::write_tiny_model(directory / "model", test::tiny_config("Qwen3ForCausalLM"), DType::bf16);
  const auto stored = std::make_shared<const io::ModelDirectory>(directory / "model");
  EXPECT_EQ(weights_fingerprint(model::map_weights(stored)),
            weights_fingerprint(model::Parameters::load(*stored).weights()));
}

}  // namespace
}  // namespace ropd::rollout
