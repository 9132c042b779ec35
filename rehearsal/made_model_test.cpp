#include "made_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "distill/scoring.h"

namespace ropd::rehearsal {
namespace {

constexpr Token kEnd = 151645;

// As deep as the smallest Qwen3, and no wider than a made model must be.
ModelConfig deep_and_narrow() {
  ModelConfig c;
  c.hidden_size = 288;
  c.intermediate_size = 256;
  c.num_layers = 28;
  c.num_heads = 4;
  c.num_kv_heads = 2;
  c.head_dim = 64;
  c.vocab_size = 151936;
  c.max_position_embeddings = 4096;
  c.rope_theta = 1e6;
  c.tie_word_embeddings = true;
  c.has_qk_norm = true;
  return c;
}

model::Parameters parameters_of(const MadeModel& made, const ModelConfig& config) {
  model::Parameters parameters(config);
  for (const model::ParameterSlot& slot : parameters.slots()) {
    std::vector<Bf16> values(static_cast<size_t>(slot.size));
    made.fill(values, slot.name, slot.shape.back(), 0);
    for (size_t i = 0; i < values.size(); ++i)
      parameters.values()[static_cast<size_t>(slot.offset) + i] = bf16_to_float(values[i]);
  }
  return parameters;
}

// The norms do not tame what layers add: a large constant is in their denominators. What each layer sees must
// therefore be bounded by how the weights are made; sizes that fed on themselves once made every token likely and
// none the last.
TEST(MadeModel, ResponsesEndAndAreNotFlatBehindManyLayers) {
  const ModelConfig config = deep_and_narrow();
  const MadeModelSettings settings{.mean_length = 50};
  const MadeModel made(config, settings);
  const model::Parameters parameters = parameters_of(made, config);
  std::vector<Rollout> rollouts(24);
  for (size_t i = 0; i < rollouts.size(); ++i) {
    rollouts[i].query_id = std::to_string(i);
    for (size_t t = 0; t < 6; ++t)
      rollouts[i].prompt_ids.push_back(static_cast<Token>(256 + (i * 6 + t) * 7919 % 20000));
    rollouts[i].response_ids = {kEnd};
  }
  model::Workspace workspace;
  const auto scores = distill::score_student(parameters.weights(), rollouts, {.top_k = 16}, workspace);
  double end = 0, mass = 0, entropy = 0;
  for (const Scores& score : scores) {
    end += std::exp(static_cast<double>(score.sampled_logprobs[0])) / 24;
    entropy += static_cast<double>(score.student_entropy[0]) / 24;
    for (const float logprob : score.student_logprobs) mass += std::exp(static_cast<double>(logprob)) / 24;
  }
  EXPECT_GT(end, 1 / settings.mean_length / 5);
  EXPECT_LT(end, 1 / settings.mean_length * 5);
  EXPECT_GT(mass, 0.6);
  EXPECT_GT(entropy, 0.5);
  EXPECT_LT(entropy, 4);
}

}  // namespace
}  // namespace ropd::rehearsal
