#include "model/gradients.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "model/weights.h"
#include "support/naive_model.h"

namespace ropd::model {
namespace {

TEST(Gradients, HaveThePlacesOfTheParameters) {
  const Parameters parameters(test::tiny_config(Architecture::qwen3, false));
  Gradients gradients(parameters.config());
  ASSERT_EQ(gradients.values().size(), parameters.values().size());
  gradients.head()[0] = 2;
  gradients.layer(1).down.whole[0] = 3;
  std::map<std::string, float> first;
  for (const ParameterSlot& slot : parameters.slots())
    first[slot.name] = gradients.values()[static_cast<size_t>(slot.offset)];
  EXPECT_EQ(first.at("lm_head.weight"), 2.0f);
  EXPECT_EQ(first.at("model.layers.1.mlp.down_proj.weight"), 3.0f);
  EXPECT_EQ(first.at("model.embed_tokens.weight"), 0.0f);
}

TEST(Gradients, OfTheHeadAreTheEmbeddingsWhenTied) {
  Gradients gradients(test::tiny_config(Architecture::qwen3, true));
  EXPECT_EQ(gradients.head().data(), gradients.embedding().data());
}

TEST(Gradients, ViewsStayValidWhenMoved) {
  Gradients first(test::tiny_config(Architecture::qwen3));
  Gradients moved = std::move(first);
  moved.final_norm()[0] = 5;
  float sum = 0;
  for (const float value : moved.values()) sum += value;
  EXPECT_EQ(sum, 5.0f);
}

// (1 + 2^-24) + 2^-24 is 1 in f32, 1 + (2^-24 + 2^-24) is not.
TEST(AddInOrder, IsTheLeftFold) {
  const ModelConfig config = test::tiny_config(Architecture::qwen3);
  Gradients sum(config);
  std::vector<Gradients> rest;
  for (int i = 0; i < 2; ++i) rest.emplace_back(config);
  std::fill(sum.values().begin(), sum.values().end(), 1.0f);
  for (Gradients& g : rest) std::fill(g.values().begin(), g.values().end(), 0x1p-24f);
  add_in_order(sum, rest);
  for (const float value : sum.values()) ASSERT_EQ(value, 1.0f);
  std::fill(sum.values().begin(), sum.values().end(), 0x1p-24f);
  std::fill(rest[1].values().begin(), rest[1].values().end(), 1.0f);
  add_in_order(sum, rest);
  for (const float value : sum.values()) ASSERT_EQ(value, 1.0f + 0x1p-23f);
}

}  // namespace
}  // namespace ropd::model
