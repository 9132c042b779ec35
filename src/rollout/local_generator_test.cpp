#include "rollout/local_generator.h"

#include <gtest/gtest.h>

#include "rollout/fingerprint.h"
#include "support/naive_model.h"

namespace ropd::rollout {
namespace {

class LocalGeneratorTest : public testing::Test {
 protected:
  const model::Parameters initial_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 1),
                          current_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 2);

  static EngineConfig config() {
    EngineConfig config;
    config.max_response_tokens = 12;
    config.memory_bytes = 16 << 20;
    return config;
  }
  LocalGenerator make(bool keeps_memory) const {
    return {[this](const Policy& policy) { return (policy.is_initial ? initial_ : current_).weights(); },
            model::Precision::f32, config(), keeps_memory};
  }
  static Rollout sample(Generator& generator) {
    const Request request{
        "q", 0, std::make_shared<const std::vector<Token>>(std::vector<Token>{1, 2}), {5, "test"}, ""};
    Rollout found;
    generator.run(std::span(&request, 1), {.on_done = [&](size_t, Rollout&& rollout) { found = rollout; }});
    return found;
  }
};

TEST_F(LocalGeneratorTest, GivesResponsesOfThePolicyThatWasAskedForUnderItsStep) {
  LocalGenerator first(initial_.weights(), model::Precision::f32, config()),
      second(current_.weights(), model::Precision::f32, config(), 7);
  const Rollout of_initial = sample(first), of_current = sample(second);
  EXPECT_NE(of_initial.response_ids, of_current.response_ids);
  EXPECT_EQ(of_current.policy_step, 7u);
  for (const bool keeps_memory : {true, false}) {
    LocalGenerator generator = make(keeps_memory);
    generator.replace_weights({.is_initial = true, .step = 0});
    EXPECT_EQ(sample(generator).response_ids, of_initial.response_ids);
    generator.release();
    generator.replace_weights({.step = 7});
    EXPECT_EQ(generator.policy_step(), 7u);
    EXPECT_EQ(sample(generator).response_ids, of_current.response_ids);
    EXPECT_EQ(sample(generator).policy_step, 7u);
  }
}

TEST_F(LocalGeneratorTest, KnowsItsPoliciesWithoutPackingThem) {
  const LocalGenerator generator = make(true);
  EXPECT_EQ(generator.fingerprint({.is_initial = true}), weights_fingerprint(initial_.weights()));
  EXPECT_EQ(generator.fingerprint({}), weights_fingerprint(current_.weights()));
  EXPECT_EQ(generator.vocab_size(), initial_.config().vocab_size);
}

TEST_F(LocalGeneratorTest, IsExactInThePrecisionOfItsProducts) {
  const LocalGenerator generator = make(true);
  EXPECT_TRUE(generator.is_exact(model::Precision::f32));
  EXPECT_FALSE(generator.is_exact(model::Precision::bf16));
}

}  // namespace
}  // namespace ropd::rollout
