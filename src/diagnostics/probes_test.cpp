#include "diagnostics/probes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "model/layer_stream.h"
#include "support/model_files.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::diagnostics {
namespace {

using test::random_parameters;
using test::tiny_config;

std::vector<Rollout> some_rollouts(uint32_t count, Token first) {
  std::vector<Rollout> rollouts(count);
  for (uint32_t i = 0; i < count; ++i)
    rollouts[i] = {
        .query_id = std::to_string(i),
        .prompt_ids = {1, 2},
        .response_ids = {first, static_cast<Token>(3 + i % 20), 7, static_cast<Token>(5 + i % 11)}};
  return rollouts;
}

ProbeConfig small_config() {
  ProbeConfig config;
  config.minibatch = 2;
  config.coordinates = 4;
  config.scoring.top_k = 4;
  return config;
}

class ProbeGradients : public testing::Test {
 protected:
  const model::Parameters student_ = random_parameters(tiny_config(Architecture::qwen3), 1);
  const model::Parameters teacher_ = random_parameters(tiny_config(Architecture::qwen3), 2);
};

TEST_F(ProbeGradients, AreWhatTheObjectiveGivesForEachMinibatchAlone) {
  const auto rollouts = some_rollouts(5, 4);
  const Probe all = probe_gradients(student_, teacher_.weights(), rollouts, small_config());
  ASSERT_EQ(all.norms.size(), 2u) << "five rollouts are two minibatches of two, and a rest";
  const Probe second =
      probe_gradients(student_, teacher_.weights(), std::span(rollouts).subspan(2, 2), small_config());
  EXPECT_EQ(second.norms[0], all.norms[1]);
  EXPECT_EQ(second.coordinates[0], all.coordinates[1]);
  EXPECT_GT(all.norms[0], 0);

  // The norm over all parameters, once more from every coordinate.
  ProbeConfig every = small_config();
  every.coordinates = 1 << 20;
  const Probe whole = probe_gradients(student_, teacher_.weights(), rollouts, every);
  ASSERT_EQ(whole.coordinates[0].size(), student_.values().size());
  double sum = 0;
  for (const double value : whole.coordinates[0]) sum += value * value;
  EXPECT_NEAR(std::sqrt(sum), whole.norms[0], 1e-9 * whole.norms[0]);
}

TEST_F(ProbeGradients, OfAStreamedTeacherAreTheSameInOnePass) {
  const test::TemporaryDirectory folder;
  test::write_tiny_model(folder / "teacher", test::tiny_config("Qwen2ForCausalLM", {{"vocab_size", "37"}}));
  const auto directory = std::make_shared<const io::ModelDirectory>(folder / "teacher");
  const model::Weights streamed = model::stream_weights(directory, 0);
  const auto rollouts = some_rollouts(4, 4);
  const Probe want = probe_gradients(student_, model::map_weights(directory), rollouts, small_config()),
              probe = probe_gradients(student_, streamed, rollouts, small_config());
  EXPECT_EQ(probe.norms, want.norms);
  EXPECT_EQ(probe.coordinates, want.coordinates);
  EXPECT_EQ(streamed.stream->counts().passes, 1u);
}

TEST_F(ProbeGradients, VanishWhereStudentAndTeacherAgree) {
  const Probe probe = probe_gradients(student_, student_.weights(), some_rollouts(2, 4), small_config());
  EXPECT_EQ(probe.norms[0], 0.0);
  EXPECT_EQ(paired_cosine(probe, probe).pairs, 0u);
}

TEST_F(ProbeGradients, LeaveTheStudentAsItIs) {
  const std::vector<float> before(student_.values().begin(), student_.values().end());
  probe_gradients(student_, teacher_.weights(), some_rollouts(2, 4), small_config());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), student_.values().begin()));
}

// A gradient is linear in its tokens' weights: over trajectories of 2 and 6 valid tokens, the mean of the two
// sequence means is (g2 + g6) / 2 with g the gradient of each trajectory alone; over all tokens it is
// (2 g2 + 6 g6) / 8.
TEST_F(ProbeGradients, MeanOverSequencesOrOverTokens) {
  std::vector<Rollout> rollouts = some_rollouts(2, 4);
  rollouts[0].response_ids = {4, 9};
  rollouts[1].response_ids = {4, 9, 11, 3, 8, 6};
  ProbeConfig one = small_config();
  one.minibatch = 1;
  const Probe alone = probe_gradients(student_, teacher_.weights(), rollouts, one);
  const auto expect_mean = [&](ProbeMean mean, double first, double second) {
    ProbeConfig both = small_config();
    both.mean = mean;
    const Probe probe = probe_gradients(student_, teacher_.weights(), rollouts, both);
    for (size_t i = 0; i < probe.coordinates[0].size(); ++i)
      EXPECT_NEAR(probe.coordinates[0][i], first * alone.coordinates[0][i] + second * alone.coordinates[1][i],
                  1e-6);
  };
  expect_mean(ProbeMean::sequences, 0.5, 0.5);
  expect_mean(ProbeMean::tokens, 0.25, 0.75);
  EXPECT_EQ(ProbeConfig{}.mean, ProbeMean::sequences) << "the paper's eight ranks have one trajectory each";
}

std::vector<model::ParameterSlot> slots_of(const std::vector<std::pair<std::string, int64_t>>& sizes) {
  std::vector<model::ParameterSlot> slots;
  int64_t offset = 0;
  for (const auto& [name, size] : sizes) {
    slots.push_back({.name = name, .shape = {size}, .offset = offset, .size = size});
    offset += size;
  }
  return slots;
}

TEST(ProbeCoordinates, AreThe3712OfThePaper) {
  ModelConfig config = tiny_config(Architecture::qwen3);
  config.num_layers = 28;
  EXPECT_EQ(probe_coordinates(model::parameter_layout(config), {}).size(), 3712u) << "16 x 29 x 8";
}

TEST(ProbeCoordinates, ComeFromEveryRanksPieceOfALayer) {
  // The rest is embedding and norm, 0-9 and 16-17, together 12: ranks have 6 each. The layer is 10-15.
  const auto slots = slots_of({{"embed", 10}, {"model.layers.0.a", 4}, {"model.layers.0.b", 2}, {"norm", 2}});
  const auto all = probe_coordinates(slots, {.ranks = 2, .coordinates = 100});
  EXPECT_EQ(all, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 10, 11, 12, 13, 14, 15}));
  const auto chosen = probe_coordinates(slots, {.ranks = 2, .coordinates = 2, .seed = 3});
  ASSERT_EQ(chosen.size(), 8u);
  const std::vector<std::set<int64_t>> pieces = {
      {0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 16, 17}, {10, 11, 12}, {13, 14, 15}};
  for (size_t i = 0; i < chosen.size(); ++i) EXPECT_TRUE(pieces[i / 2].contains(chosen[i])) << chosen[i];
  // Seven elements on four ranks: pieces of two, the last of one.
  EXPECT_EQ(probe_coordinates(slots_of({{"w", 7}}), {.ranks = 4, .coordinates = 100}).size(), 7u);
  EXPECT_EQ(probe_coordinates(slots_of({{"w", 7}}), {.ranks = 4, .coordinates = 1}).size(), 4u);
}

TEST(ProbeCoordinates, AreDistinctInsideTheirTensorsAndFixed) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 1);
  const auto choose = [&](uint64_t seed) {
    return probe_coordinates(parameters.slots(),
                             {.units = ProbeUnits::tensors, .ranks = 1, .coordinates = 16, .seed = seed});
  };
  const auto chosen = choose(3);
  EXPECT_EQ(std::set<int64_t>(chosen.begin(), chosen.end()).size(), chosen.size());
  for (const auto& slot : parameters.slots())
    EXPECT_EQ(std::count_if(chosen.begin(), chosen.end(),
                            [&](int64_t i) { return i >= slot.offset && i < slot.offset + slot.size; }),
              std::min<int64_t>(16, slot.size))
        << slot.name;
  EXPECT_EQ(chosen, choose(3));
  EXPECT_NE(chosen, choose(4));
}

TEST(PairedCosine, OfKnownVectors) {
  Probe a, b;
  a.coordinates = {{1, 0}, {0, 2}, {0, 0}};
  b.coordinates = {{1, 0}, {3, 0}, {1, 1}};
  const auto cosine = paired_cosine(a, b);  // 1 and 0; the third has no direction
  EXPECT_EQ(cosine.pairs, 2u);
  EXPECT_DOUBLE_EQ(cosine.mean, 0.5);
  EXPECT_DOUBLE_EQ(cosine.standard_error, 0.5);
}

}  // namespace
}  // namespace ropd::diagnostics
