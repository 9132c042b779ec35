#include "model/training_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/vocab_head.h"
#include "kernels/vocab_rows.h"
#include "model/forward.h"
#include "support/chosen_target.h"
#include "support/naive_model.h"

namespace ropd::model {
namespace {

using test::NaiveModel;
using test::random_parameters;
using test::tiny_config;
using Sequences = std::vector<std::vector<Token>>;

const Sequences kSequences = {{3, 5, 8, 1, 30, 36, 0, 7, 12}, {9}, {4, 4, 4, 20, 11, 2}};

PackedBatch pack(const Sequences& sequences) {
  PackedBatch batch;
  for (const auto& sequence : sequences) batch.append(sequence);
  return batch;
}

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

// loss = sum over positions of weight * log pi(token after it), weights of both signs.
double naive_loss(const NaiveModel& oracle) {
  double loss = 0;
  for (const auto& sequence : kSequences) {
    const auto logits = oracle.logits(sequence);
    for (size_t t = 0; t + 1 < sequence.size(); ++t)
      loss += (t % 3 == 0 ? -0.7 : 0.4) *
              NaiveModel::log_softmax(logits[t])[static_cast<size_t>(sequence[t + 1])];
  }
  return loss;
}

struct PassSettings {
  size_t budget = size_t{1} << 30;
  Precision precision = Precision::f32;
  size_t sequences_a_part = SIZE_MAX;
};

void add_part(Gradients& gradients, TrainingPass& pass, const Weights& weights, const Sequences& sequences,
              const PassSettings& settings) {
  const PackedBatch batch = pack(sequences);
  std::vector<int64_t> rows;
  for (size_t t = 0; t + 1 < batch.tokens.size(); ++t)
    if (batch.positions[t + 1] > 0) rows.push_back(static_cast<int64_t>(t));
  const auto states = pass.forward(weights, batch, rows);
  Buffer grad_states(states.size());
  grad_states.fill(0);
  kernels::vocab_head_grad(grad_states, gradients.head(), states, weights.head.stored, settings.precision,
                           pass.row_begins(), 1 << 20, [&](int64_t row, std::span<float> logits) {
                             const auto at = static_cast<size_t>(rows[static_cast<size_t>(row)]);
                             const Token target = batch.tokens[at + 1];
                             const float coefficient = batch.positions[at] % 3 == 0 ? -0.7f : 0.4f;
                             kernels::candidate_gradient(logits, std::span(&target, 1),
                                                         std::span(&coefficient, 1), 1.0f,
                                                         kernels::row_log_sum_exp(logits));
                           });
  pass.backward(gradients, grad_states);
}

std::vector<float> gradient_of(const Parameters& parameters, const std::vector<Sequences>& microbatches,
                               const PassSettings& settings = {}) {
  const Weights weights = parameters.weights();
  Gradients gradients(parameters.config());
  TrainingPass pass(settings.precision, settings.budget);
  for (const Sequences& microbatch : microbatches) {
    for (size_t begin = 0, end; begin < microbatch.size(); begin = end) {
      end = std::min(microbatch.size(), begin + std::min(settings.sequences_a_part, microbatch.size()));
      add_part(gradients, pass, weights,
               {microbatch.begin() + static_cast<ptrdiff_t>(begin),
                microbatch.begin() + static_cast<ptrdiff_t>(end)},
               settings);
    }
    pass.finish(gradients);
  }
  return copy(gradients.values());
}

// Odd lengths, and one longer than a part should be.
Sequences many_sequences() {
  Sequences sequences;
  for (size_t s = 0; s < 40; ++s) {
    sequences.emplace_back();
    const size_t length = s == 17 ? 250 : 11 + s * 7 % 53;
    for (size_t t = 0; t < length; ++t) sequences.back().push_back(static_cast<Token>((s * 31 + t * 5) % 37));
  }
  return sequences;
}

class EveryTrainableArchitecture : public testing::TestWithParam<std::pair<Architecture, bool>> {};
INSTANTIATE_TEST_SUITE_P(Model, EveryTrainableArchitecture,
                         testing::Values(std::pair{Architecture::qwen3, true},
                                         std::pair{Architecture::qwen3, false},
                                         std::pair{Architecture::qwen2, true},
                                         std::pair{Architecture::llama, false}));

TEST_P(EveryTrainableArchitecture, GradientEqualsFiniteDifferencesOfTheOracleInEveryTensor) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 4);
  const auto gradient = gradient_of(parameters, {kSequences});
  NaiveModel oracle(parameters);
  for (const auto& slot : parameters.slots()) {
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < slot.size; i += std::max<int64_t>(1, slot.size / 12)) {
      double& value = oracle.tensor(slot.name)[static_cast<size_t>(i)];
      const double at = value, step = 1e-5;
      value = at + step;
      const double above = naive_loss(oracle);
      value = at - step;
      const double below = naive_loss(oracle);
      value = at;
      const double want = (above - below) / (2 * step), got = gradient[static_cast<size_t>(slot.offset + i)];
      difference += (got - want) * (got - want);
      norm += want * want;
    }
    EXPECT_LT(std::sqrt(difference), 2e-4 * std::sqrt(norm) + 2e-6) << slot.name;
  }
}

TEST_P(EveryTrainableArchitecture, RecomputedLayersGiveTheSameBits) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 5);
  const size_t one_layer = trace_bytes_per_token(parameters.config()) * 20;
  const auto stored = gradient_of(parameters, {kSequences});
  EXPECT_EQ(stored, gradient_of(parameters, {kSequences}, {.budget = 0}));
  EXPECT_EQ(stored, gradient_of(parameters, {kSequences}, {.budget = one_layer}));
}

TEST_P(EveryTrainableArchitecture, PartsAndThreadsGiveTheSameBits) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 8);
  const size_t before = num_threads();
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles}) {
    set_num_threads(1);
    const auto whole = gradient_of(parameters, {many_sequences()}, {.precision = precision});
    for (const int threads : {1, 3})
      for (const size_t sequences : {1, 7, 40}) {
        set_num_threads(threads);
        EXPECT_EQ(whole, gradient_of(parameters, {many_sequences()},
                                     {.precision = precision, .sequences_a_part = sequences}))
            << threads << " threads, " << sequences << " sequences a part";
      }
  }
  set_num_threads(before);
}

TEST(TrainingPass, GradientsOfMicrobatchesAddUpBitForBitWhenEmbeddingsAreUntied) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3, false), 6);
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles})
    EXPECT_EQ(
        gradient_of(parameters, {kSequences}, {.precision = precision}),
        gradient_of(parameters, {{kSequences[0]}, {kSequences[1], kSequences[2]}}, {.precision = precision}));
}

// Its products round; what they compute is still the gradient.
TEST(TrainingPass, RoundedGradientsAreCloseToTheExactOne) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3, true), 9);
  const auto exact = gradient_of(parameters, {many_sequences()});
  for (const auto precision : {Precision::bf16, Precision::bf16_tiles}) {
    const auto rounded = gradient_of(parameters, {many_sequences()}, {.precision = precision});
    double difference = 0, norm = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      difference += std::pow(static_cast<double>(rounded[i]) - exact[i], 2);
      norm += std::pow(static_cast<double>(exact[i]), 2);
    }
    EXPECT_LT(std::sqrt(difference), 0.05 * std::sqrt(norm)) << name_of(precision);
    EXPECT_GT(difference, 0);
  }
}

TEST(TrainingPass, StatesEqualThoseOfScoring) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 7);
  const Weights weights = parameters.weights();
  const PackedBatch batch = pack(kSequences);
  std::vector<int64_t> rows(batch.tokens.size());
  std::iota(rows.begin(), rows.end(), 0);
  TrainingPass pass(Precision::f32, 0);
  Workspace workspace;
  Buffer hidden(batch.tokens.size() * static_cast<size_t>(weights.config.hidden_size));
  forward(hidden, weights, batch, Precision::f32, workspace);
  EXPECT_EQ(copy(pass.forward(weights, batch, rows)), copy(hidden));
}

// Short parts keep traces of both layers, long ones of one and compute the other again.
TEST(TrainingPass, HoldsNoMoreThanItsLargestPartNeedsAndKeepsItForEqualOnes) {
  ModelConfig config = tiny_config(Architecture::qwen3);
  config.num_layers = 9;
  const auto parameters = random_parameters(config, 7);
  const Weights weights = parameters.weights();
  const auto part_of = [](int length) {
    Sequences sequences(1);
    for (int i = 0; i < length; ++i) sequences[0].push_back(static_cast<Token>(i % 37));
    return sequences;
  };
  constexpr int kLongest = 200;
  const size_t budget =
      trace_bytes_per_token(config) * kLongest * 5 / 2;  // two long traces, all of short ones
  const auto run = [&](TrainingPass& pass, int length) {
    const PackedBatch batch = pack(part_of(length));
    const float* const states = pass.forward(weights, batch, {0}).data();
    return std::pair(states, pass.trace_bytes());
  };
  size_t most = 0;
  for (const int length : {40, kLongest, 120}) {
    TrainingPass pass(Precision::f32, budget);
    most = std::max(most, run(pass, length).second);
  }
  TrainingPass pass(Precision::f32, budget);
  for (const int length : {kLongest, 40, 120, kLongest, 41, 119, kLongest, 1})
    EXPECT_LE(run(pass, length).second, most + most / 50) << length;
  const auto first = run(pass, kLongest);
  EXPECT_EQ(run(pass, kLongest), first);
  EXPECT_EQ(run(pass, kLongest - 3), first) << "a little less is no reason to give anything back";
}

TEST(TrainingPass, RefusesTokensOfAnotherModel) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 7);
  const Weights weights = parameters.weights();
  TrainingPass pass(Precision::f32);
  EXPECT_THROW(pass.forward(weights, pack({{1, 37}}), {0}), Error);
}

TEST_P(EveryTrainableArchitecture, EveryInstructionSetComputesTheSame) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 10);
  const auto gradient = gradient_of(parameters, {many_sequences()});
  int tried = 0;
  for (const int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & target) == 0) continue;
    const test::ChosenTarget chosen(target);
    ++tried;
    const auto other = gradient_of(parameters, {many_sequences()});
    if (target == HWY_AVX2 || target == HWY_AVX3) {  // both have fused multiply-adds: the same bits
      EXPECT_EQ(gradient, other) << hwy::TargetName(target);
      continue;
    }
    double difference = 0, norm = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      difference += (gradient[i] - other[i]) * (gradient[i] - other[i]);
      norm += gradient[i] * gradient[i];
    }
    EXPECT_LT(std::sqrt(difference / norm), 1e-4) << hwy::TargetName(target);
  }
  EXPECT_GE(tried, 2);
}

}  // namespace
}  // namespace ropd::model
