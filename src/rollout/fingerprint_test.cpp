#include "rollout/fingerprint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "model/adapter.h"
#include "support/model_files.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::rollout {
namespace {

TEST(WeightsFingerprint, FollowsTheValues) {
  auto parameters = test::random_parameters(test::tiny_config(Architecture::qwen3_moe), 3);
  const std::string before = weights_fingerprint(parameters.weights());
  EXPECT_EQ(before.size(), 68u);
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

// As damage on a disk or a hostile hand would have it: one bit, anywhere.
TEST(WeightsFingerprint, SeesEveryFlippedBit) {
  auto parameters = test::random_parameters(test::tiny_config(Architecture::qwen3), 3);
  const std::string before = weights_fingerprint(parameters.weights());
  const size_t size = parameters.values().size();
  for (size_t i = 0; i < 45; ++i) {
    uint32_t bits = 0;
    float& value = parameters.values()[i * 7919 % size];
    std::memcpy(&bits, &value, sizeof bits);
    const uint32_t flipped = bits ^ (1u << (i % 32));
    std::memcpy(&value, &flipped, sizeof flipped);
    EXPECT_NE(weights_fingerprint(parameters.weights()), before) << i;
    std::memcpy(&value, &bits, sizeof bits);
  }
}

TEST(WeightsFingerprint, FollowsAnAdapterThatChangesSomething) {
  const auto base = test::random_parameters(test::tiny_config(Architecture::qwen3), 3);
  model::Adapter adapter(base.config(), {.rank = 2, .targets = {}, .ranks = {}, .alphas = {}});
  adapter.initialize(1);
  const std::string before = weights_fingerprint(base.weights());
  EXPECT_EQ(weights_fingerprint(adapter.on(base.weights())), before);  // B is zero
  std::set<std::string> seen = {before};
  for (const size_t slot : {1, 0, 3}) {  // B and A of the first matrix, B of the second
    adapter.values()[static_cast<size_t>(adapter.slots()[slot].offset)] += 0.25f;
    EXPECT_TRUE(seen.insert(weights_fingerprint(adapter.on(base.weights()))).second) << slot;
  }
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
