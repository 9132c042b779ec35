#include "model/rope_frequencies.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ropd::model {
namespace {

// Frequencies 1, 0.1, 0.01, 0.001.
ModelConfig config_with(RopeScaling scaling) {
  ModelConfig config;
  config.head_dim = 8;
  config.rope_theta = 10000;
  config.rope_scaling = scaling;
  return config;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-9 * expected[i]) << i;
}

TEST(RopeFrequencies, ArePlainWithoutScaling) {
  const auto result = rope_frequencies(config_with({}));
  expect_near(result.inverse, {1, 0.1, 0.01, 0.001});
  EXPECT_EQ(result.factor, 1);
}

TEST(RopeFrequencies, AreAllDividedByLinearScaling) {
  expect_near(rope_frequencies(config_with({.kind = RopeScaling::Kind::linear, .factor = 4})).inverse,
              {0.25, 0.025, 0.0025, 0.00025});
}

// Turns within 64 positions: 10.2 (kept), 1.02 (barely above low_frequency), 0.1 and 0.01 (divided).
TEST(RopeFrequencies, Llama3KeepsWhatTurnsOften) {
  const auto result = rope_frequencies(
      config_with({.kind = RopeScaling::Kind::llama3, .factor = 8, .original_positions = 64}));
  const double kept = (64 * 0.1 / (2 * M_PI) - 1) / 3;
  expect_near(result.inverse, {1, 0.1 * (kept + (1 - kept) / 8), 0.01 / 8, 0.001 / 8});
  EXPECT_EQ(result.factor, 1);
}

// 32 turns would be pair -0.5, one turn pair 1.008: the ramp runs from pair 0 to pair 2.
TEST(RopeFrequencies, YarnIsARampOverDimensions) {
  const auto result = rope_frequencies(config_with(
      {.kind = RopeScaling::Kind::yarn, .factor = 4, .original_positions = 64, .attention_factor = 1.25}));
  expect_near(result.inverse, {1, 0.1 * (0.5 + 0.5 / 4), 0.01 / 4, 0.001 / 4});
  EXPECT_EQ(result.factor, 1.25);
}

}  // namespace
}  // namespace ropd::model
