#include "model/forward.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "kernels/vocab_head.h"
#include "kernels/vocab_rows.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::model {
namespace {

using test::NaiveModel;
using test::random_parameters;
using test::tiny_config;

const std::vector<std::vector<Token>> kSequences = {
    {3, 5, 8, 1, 30, 36, 0, 7, 12}, {9}, {4, 4, 4, 20, 11, 2}};

PackedBatch pack(const std::vector<std::vector<Token>>& sequences) {
  PackedBatch batch;
  for (const auto& sequence : sequences) batch.append(sequence);
  return batch;
}

Buffer hidden_of(const Weights& weights, const PackedBatch& batch, Precision precision = Precision::f32) {
  Workspace workspace;
  Buffer hidden(batch.tokens.size() * static_cast<size_t>(weights.config.hidden_size));
  forward(hidden, weights, batch, precision, workspace);
  return hidden;
}

std::vector<float> logits_of(const Weights& weights, const PackedBatch& batch) {
  const Buffer hidden = hidden_of(weights, batch);
  std::vector<float> logits(batch.tokens.size() * static_cast<size_t>(weights.config.vocab_size));
  weights.head.apply(logits, hidden, Precision::f32);
  return logits;
}

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

class EveryArchitecture : public testing::TestWithParam<std::pair<Architecture, bool>> {};
INSTANTIATE_TEST_SUITE_P(Model, EveryArchitecture,
                         testing::Values(std::pair{Architecture::qwen3, true},
                                         std::pair{Architecture::qwen3, false},
                                         std::pair{Architecture::qwen2, true},
                                         std::pair{Architecture::llama, false},
                                         std::pair{Architecture::qwen3_moe, false}));

TEST_P(EveryArchitecture, LogitsEqualTheDoublePrecisionOracle) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 1);
  const NaiveModel oracle(parameters);
  const auto logits = logits_of(parameters.weights(), pack(kSequences));
  size_t row = 0;
  for (const auto& sequence : kSequences)
    for (const auto& want : oracle.logits(sequence)) {
      for (size_t v = 0; v < want.size(); ++v)
        ASSERT_NEAR(logits[row * want.size() + v], want[v], 2e-5) << row << " " << v;
      ++row;
    }
}

TEST_P(EveryArchitecture, PackedSequencesEqualOneByOneBitForBit) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 2);
  for (const auto precision : {Precision::f32, Precision::bf16}) {
    const auto together = copy(hidden_of(parameters.weights(), pack(kSequences), precision));
    std::vector<float> apart;
    for (const auto& sequence : kSequences) {
      const auto one = copy(hidden_of(parameters.weights(), pack({sequence}), precision));
      apart.insert(apart.end(), one.begin(), one.end());
    }
    EXPECT_EQ(together, apart);
  }
}

TEST_P(EveryArchitecture, ThreadsDoNotChangeABit) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 3);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto one = copy(hidden_of(parameters.weights(), pack(kSequences)));
  omp_set_num_threads(3);
  const auto three = copy(hidden_of(parameters.weights(), pack(kSequences)));
  omp_set_num_threads(before);
  EXPECT_EQ(one, three);
}

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

std::vector<float> gradient_of(const Parameters& parameters,
                               const std::vector<std::vector<std::vector<Token>>>& microbatches,
                               size_t budget, Precision precision = Precision::f32) {
  const Weights weights = parameters.weights();
  Gradients gradients(parameters);
  TrainingPass pass(weights, precision, budget);
  for (const auto& sequences : microbatches) {
    const PackedBatch batch = pack(sequences);
    const auto hidden = pass.forward(batch);
    Buffer grad_hidden(hidden.size());
    grad_hidden.fill(0);
    std::vector<int32_t> target(batch.tokens.size(), -1);
    for (size_t t = 0; t + 1 < batch.tokens.size(); ++t)
      if (batch.positions[t + 1] > 0) target[t] = batch.tokens[t + 1];
    kernels::vocab_head_grad(grad_hidden, gradients.head(), hidden, weights.head.stored, precision, 1 << 20,
                             [&](int64_t row, std::span<float> logits) {
                               if (target[row] < 0) return std::fill(logits.begin(), logits.end(), 0.0f);
                               const float coefficient = batch.positions[row] % 3 == 0 ? -0.7f : 0.4f;
                               kernels::candidate_gradient(logits, std::span(&target[row], 1),
                                                           std::span(&coefficient, 1), 1.0f,
                                                           kernels::row_log_sum_exp(logits));
                             });
    pass.backward(gradients, grad_hidden, batch);
  }
  return copy(gradients.values());
}

constexpr size_t kPlenty = size_t{1} << 30;

class EveryTrainableArchitecture : public testing::TestWithParam<std::pair<Architecture, bool>> {};
INSTANTIATE_TEST_SUITE_P(Model, EveryTrainableArchitecture,
                         testing::Values(std::pair{Architecture::qwen3, true},
                                         std::pair{Architecture::qwen3, false},
                                         std::pair{Architecture::qwen2, true},
                                         std::pair{Architecture::llama, false}));

TEST_P(EveryTrainableArchitecture, GradientEqualsFiniteDifferencesOfTheOracleInEveryTensor) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 4);
  const auto gradient = gradient_of(parameters, {kSequences}, kPlenty);
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
  const auto stored = gradient_of(parameters, {kSequences}, kPlenty);
  EXPECT_EQ(stored, gradient_of(parameters, {kSequences}, 0));
  EXPECT_EQ(stored, gradient_of(parameters, {kSequences}, one_layer));
}

TEST(TrainingPass, GradientsOfMicrobatchesAddUpBitForBitWhenEmbeddingsAreUntied) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3, false), 6);
  for (const auto precision : {Precision::f32, Precision::bf16})
    EXPECT_EQ(gradient_of(parameters, {kSequences}, kPlenty, precision),
              gradient_of(parameters, {{kSequences[0]}, {kSequences[1], kSequences[2]}}, kPlenty, precision));
}

TEST(TrainingPass, HiddenStatesEqualThoseOfScoring) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 7);
  const Weights weights = parameters.weights();
  TrainingPass pass(weights, Precision::f32, 0);
  const PackedBatch batch = pack(kSequences);
  EXPECT_EQ(copy(pass.forward(batch)), copy(hidden_of(weights, batch)));
}

TEST(CheckBatch, NamesTheIdAndTheVocabulary) {
  const auto config = tiny_config(Architecture::qwen3);
  const auto message = [&](const PackedBatch& batch) -> std::string {
    try {
      check_batch(batch, config);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(pack({{1, 37}})),
            "sequence 0, position 1: id 37 is outside the vocabulary of 37 (tokens of another model?)");
  EXPECT_EQ(message(pack({{-1}})),
            "sequence 0, position 0: id -1 is outside the vocabulary of 37 (tokens of another model?)");
  EXPECT_EQ(message(pack({std::vector<Token>(257, 1)})),
            "sequence 0: 257 tokens, the model has max_position_embeddings = 256");
}

TEST(GoldenModels, Qwen3TinyEqualsItsFloat64Reference) {
  ROPD_NEEDS_DATA();
  const auto path = test::data_directory() / "models/qwen3_tiny";
  const Json golden = parse_json(read_file(path / "golden.json"), "golden.json");
  const auto directory = std::make_shared<const io::ModelDirectory>(path);
  const auto logits = logits_of(map_weights(directory), pack({golden["ids"].get<std::vector<Token>>()}));
  double largest = 0;
  size_t i = 0;
  for (const auto& row : golden["logits"])
    for (const auto& value : row) largest = std::max(largest, std::abs(logits[i++] - value.get<double>()));
  EXPECT_EQ(i, logits.size());
  EXPECT_LE(largest, 2e-5);
}

TEST(GoldenModels, Stories260KContinuesItsReferenceGreedily) {
  ROPD_NEEDS_DATA();
  const auto path = test::data_directory() / "models/stories260K";
  const Json golden = parse_json(read_file(path / "golden.json"), "golden.json");
  const auto ids = golden["ids"].get<std::vector<Token>>();
  const auto directory = std::make_shared<const io::ModelDirectory>(path);
  const auto logits = logits_of(map_weights(directory), pack({ids}));
  for (size_t t = 0; t + 1 < ids.size(); ++t) {
    const float* row = logits.data() + t * 512;
    EXPECT_EQ(std::max_element(row, row + 512) - row, ids[t + 1]) << "position " << t;
  }
  for (size_t v = 0; v < 512; ++v)
    EXPECT_NEAR(logits[(ids.size() - 1) * 512 + v], golden["logits_last"][v].get<double>(), 5e-4);
}

}  // namespace
}  // namespace ropd::model
