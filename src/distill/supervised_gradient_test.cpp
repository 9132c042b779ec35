#include "distill/supervised_gradient.h"

#include <gtest/gtest.h>

#include "support/naive_model.h"

namespace ropd::distill {
namespace {

class SupervisedGradient : public testing::Test {
 protected:
  const model::Parameters parameters_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 8);
  const std::vector<SftExample> examples_ = {{{1, 2}, {3, 4, 5}, {1, 0.5, 0}}, {{7}, {8, 9}, {0, 2}}};

  struct Outcome {
    double loss = 0;
    std::vector<float> gradient;
  };
  Outcome run(const std::vector<std::span<const SftExample>>& microbatches, double total_weight) const {
    const auto weights = parameters_.weights();
    model::Gradients gradients(parameters_.config());
    model::TrainingPass pass(kernels::Precision::f32);
    Outcome outcome;
    for (const auto& examples : microbatches)
      outcome.loss +=
          accumulate_supervised(gradients, pass, weights, {examples, total_weight}, kernels::Precision::f32);
    outcome.gradient.assign(gradients.values().begin(), gradients.values().end());
    return outcome;
  }
};

TEST_F(SupervisedGradient, LossIsTheWeightedMeanCrossEntropy) {
  const test::NaiveModel naive(parameters_);
  double expected = 0;
  for (const SftExample& example : examples_) {
    auto tokens = example.prompt_ids;
    tokens.insert(tokens.end(), example.response_ids.begin(), example.response_ids.end());
    const auto logits = naive.logits(tokens);
    for (size_t t = 0; t < example.response_ids.size(); ++t)
      expected -=
          example.loss_weights[t] *
          test::NaiveModel::log_softmax(
              logits[example.prompt_ids.size() - 1 + t])[static_cast<size_t>(example.response_ids[t])];
  }
  EXPECT_NEAR(run({examples_}, 3.5).loss, expected / 3.5, 1e-5);
}

TEST_F(SupervisedGradient, MicrobatchesAddUp) {
  const Outcome once = run({examples_}, 3.5);
  const Outcome apart = run({std::span(examples_).first(1), std::span(examples_).last(1)}, 3.5);
  EXPECT_NEAR(once.loss, apart.loss, 1e-6);
  for (size_t i = 0; i < once.gradient.size(); ++i) ASSERT_NEAR(once.gradient[i], apart.gradient[i], 1e-6);
}

}  // namespace
}  // namespace ropd::distill
