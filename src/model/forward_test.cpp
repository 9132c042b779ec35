#include "model/forward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "base/threads.h"
#include "kernels/vocab_head.h"
#include "kernels/vocab_rows.h"
#include "support/chosen_target.h"
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
  const size_t before = num_threads();
  set_num_threads(1);
  const auto one = copy(hidden_of(parameters.weights(), pack(kSequences)));
  set_num_threads(3);
  const auto three = copy(hidden_of(parameters.weights(), pack(kSequences)));
  set_num_threads(before);
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
    std::vector<int64_t> rows;
    std::vector<int32_t> target;
    for (size_t t = 0; t + 1 < batch.tokens.size(); ++t)
      if (batch.positions[t + 1] > 0) {
        rows.push_back(static_cast<int64_t>(t));
        target.push_back(batch.tokens[t + 1]);
      }
    pass.accumulate(gradients, batch, rows,
                    [&](std::span<float> grad_states, std::span<float> grad_head,
                        std::span<const float> states, size_t first) {
                      kernels::vocab_head_grad(
                          grad_states, grad_head, states, weights.head.stored, precision, 1 << 20,
                          [&](int64_t row, std::span<float> logits) {
                            const size_t r = first + static_cast<size_t>(row);
                            const float coefficient =
                                batch.positions[static_cast<size_t>(rows[r])] % 3 == 0 ? -0.7f : 0.4f;
                            kernels::candidate_gradient(logits, std::span(&target[r], 1),
                                                        std::span(&coefficient, 1), 1.0f,
                                                        kernels::row_log_sum_exp(logits));
                          });
                    });
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

TEST(TrainingPass, StatesEqualThoseOfScoring) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 7);
  const Weights weights = parameters.weights();
  Gradients gradients(parameters);
  TrainingPass pass(weights, Precision::f32, 0);
  const PackedBatch batch = pack(kSequences);
  std::vector<int64_t> rows(batch.tokens.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> states;
  pass.accumulate(gradients, batch, rows,
                  [&](std::span<float>, std::span<float>, std::span<const float> some, size_t) {
                    states.insert(states.end(), some.begin(), some.end());
                  });
  EXPECT_EQ(states, copy(hidden_of(weights, batch)));
}

// Enough sequences for several parts; odd lengths, and one longer than a part should be.
std::vector<std::vector<Token>> many_sequences() {
  std::vector<std::vector<Token>> sequences;
  for (size_t s = 0; s < 40; ++s) {
    sequences.emplace_back();
    const size_t length = s == 17 ? 250 : 11 + s * 7 % 53;
    for (size_t t = 0; t < length; ++t) sequences.back().push_back(static_cast<Token>((s * 31 + t * 5) % 37));
  }
  return sequences;
}

std::vector<float> gradient_with_threads(int threads, const Parameters& parameters,
                                         const std::vector<std::vector<Token>>& sequences, size_t budget,
                                         Precision precision = Precision::f32) {
  const size_t before = num_threads();
  set_num_threads(threads);
  const auto gradient = gradient_of(parameters, {sequences}, budget, precision);
  set_num_threads(before);
  return gradient;
}

TEST(TrainingPass, TakesMoreThreadsThanSequences) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 11);
  const auto all = many_sequences();
  const std::vector<std::vector<Token>> three(3, all[17]);
  ASSERT_GT(num_tasks(parameters.config(), 750), 1);
  EXPECT_EQ(gradient_with_threads(1, parameters, three, kPlenty),
            gradient_with_threads(16, parameters, three, kPlenty));
}

TEST_P(EveryTrainableArchitecture, ThreadsThatTakeSequencesGiveTheBitsOfOneThread) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 8);
  for (const auto precision : {Precision::f32, Precision::bf16}) {
    const auto with_threads = [&](int threads, size_t budget) {
      return gradient_with_threads(threads, parameters, many_sequences(), budget, precision);
    };
    const auto one = with_threads(1, kPlenty);
    for (const int threads : {2, 3, 7}) {
      EXPECT_EQ(one, with_threads(threads, kPlenty)) << threads;
      EXPECT_EQ(one, with_threads(threads, 0)) << threads;
    }
  }
}

TEST_P(EveryTrainableArchitecture, EveryInstructionSetComputesTheSame) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 10);
  const auto relative_difference = [](const std::vector<float>& a, const std::vector<float>& b) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      difference += (a[i] - b[i]) * (a[i] - b[i]);
      norm += a[i] * a[i];
    }
    return std::sqrt(difference / norm);
  };
  const auto results = [&] {
    return std::pair{logits_of(parameters.weights(), pack(kSequences)),
                     gradient_of(parameters, {many_sequences()}, kPlenty)};
  };
  const auto [logits, gradient] = results();
  int tried = 0;
  for (const int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & target) == 0) continue;
    const test::ChosenTarget chosen(target);
    ++tried;
    const auto [other_logits, other_gradient] = results();
    if (target == HWY_AVX2 || target == HWY_AVX3) {  // both have fused multiply-adds: the same bits
      EXPECT_EQ(logits, other_logits) << hwy::TargetName(target);
      EXPECT_EQ(gradient, other_gradient) << hwy::TargetName(target);
      continue;
    }
    EXPECT_LT(relative_difference(logits, other_logits), 1e-5) << hwy::TargetName(target);
    EXPECT_LT(relative_difference(gradient, other_gradient), 1e-4) << hwy::TargetName(target);
  }
  EXPECT_GE(tried, 2);
}

// Responses to five prompts, taking turns; one prompt has a single response.
struct Responses {
  std::vector<std::vector<Token>> prompts, texts;
  std::vector<PromptedResponse> all;
  Responses() {
    for (size_t i = 0; i < 33; ++i) {
      const size_t query = i == 32 ? 4 : i % 4;
      prompts.emplace_back();
      for (size_t t = 0; t < 3 + query * 37; ++t)
        prompts.back().push_back(static_cast<Token>((query * 5 + t * 3) % 37));
      texts.emplace_back();
      for (size_t t = 0; t < 1 + i * 13 % 40; ++t)
        texts.back().push_back(static_cast<Token>((i * 31 + t * 5) % 37));
    }
    for (size_t i = 0; i < prompts.size(); ++i) all.push_back({prompts[i], texts[i]});
  }
};

// The states that predict the responses, one response behind the other.
std::vector<float> predicting_states(const Weights& weights, const Responses& responses, Prompts prompts,
                                     Precision precision) {
  const auto [batch, first_rows] = pack_responses(responses.all, prompts);
  const auto hidden = copy(hidden_of(weights, batch, precision));
  const auto width = static_cast<size_t>(weights.config.hidden_size);
  std::vector<float> states;
  for (size_t i = 0; i < responses.all.size(); ++i) {
    const auto first = hidden.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(first_rows[i]) * width);
    states.insert(states.end(), first, first + static_cast<ptrdiff_t>(responses.texts[i].size() * width));
  }
  return states;
}

TEST_P(EveryArchitecture, SharedPromptsGiveTheStatesOfPromptsOfTheirOwn) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 12);
  const Responses responses;
  for (const auto precision : {Precision::f32, Precision::bf16}) {
    const auto own = predicting_states(parameters.weights(), responses, Prompts::each_its_own, precision);
    EXPECT_EQ(own, predicting_states(parameters.weights(), responses, Prompts::shared, precision));
    // Threads that have sequences of their own take them in parts.
    std::vector<std::vector<float>> in_parts(4);
    const size_t before = num_threads();
    set_num_threads(2);
    parallel_tasks(4, [&](size_t task, size_t) {
      ASSERT_TRUE(is_in_parallel());
      in_parts[task] = predicting_states(parameters.weights(), responses,
                                         task % 2 == 0 ? Prompts::shared : Prompts::each_its_own, precision);
    });
    set_num_threads(before);
    for (const auto& states : in_parts) EXPECT_EQ(own, states);
  }
}

TEST(Forward, SharedPromptsGiveTheStatesOfPromptsOfTheirOwnInALargeModel) {
  ModelConfig config = tiny_config(Architecture::qwen3);
  config.intermediate_size = 40000;
  const auto parameters = random_parameters(config, 13);
  ASSERT_FALSE(stays_in_cache(config));
  const Responses responses;
  EXPECT_EQ(predicting_states(parameters.weights(), responses, Prompts::shared, Precision::f32),
            predicting_states(parameters.weights(), responses, Prompts::each_its_own, Precision::f32));
}

std::vector<float> gradient_of_responses(const Parameters& parameters, const Responses& responses,
                                         Prompts prompts, size_t budget, int threads, Precision precision) {
  const Weights weights = parameters.weights();
  Gradients gradients(parameters);
  TrainingPass pass(weights, precision, budget);
  const auto [batch, first_rows] = pack_responses(responses.all, prompts);
  std::vector<std::pair<int64_t, Token>> targets;
  for (size_t i = 0; i < responses.all.size(); ++i)
    for (size_t t = 0; t < responses.texts[i].size(); ++t)
      targets.emplace_back(first_rows[i] + static_cast<int64_t>(t), responses.texts[i][t]);
  std::sort(targets.begin(), targets.end());
  std::vector<int64_t> rows;
  for (const auto& [row, target] : targets) rows.push_back(row);
  const size_t before = num_threads();
  set_num_threads(threads);
  for (int repeat = 0; repeat < 2; ++repeat)  // nothing may be left of the first
    pass.accumulate(gradients, batch, rows,
                    [&](std::span<float> grad_states, std::span<float> grad_head,
                        std::span<const float> states, size_t first) {
                      kernels::vocab_head_grad(grad_states, grad_head, states, weights.head.stored, precision,
                                               1 << 20, [&](int64_t row, std::span<float> logits) {
                                                 const auto& [at, target] =
                                                     targets[first + static_cast<size_t>(row)];
                                                 kernels::cross_entropy_gradient(logits, target, 0.01f);
                                               });
                    });
  set_num_threads(before);
  return copy(gradients.values());
}

TEST_P(EveryTrainableArchitecture, SharedPromptsGiveTheGradientOfPromptsOfTheirOwn) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 14);
  const Responses responses;
  const auto own =
      gradient_of_responses(parameters, responses, Prompts::each_its_own, kPlenty, 2, Precision::f32);
  const auto shared =
      gradient_of_responses(parameters, responses, Prompts::shared, kPlenty, 2, Precision::f32);
  for (const auto& slot : parameters.slots()) {
    double difference = 0, norm = 0;
    for (auto i = static_cast<size_t>(slot.offset); i < static_cast<size_t>(slot.offset + slot.size); ++i) {
      difference += (own[i] - shared[i]) * (own[i] - shared[i]);
      norm += own[i] * own[i];
    }
    EXPECT_LT(std::sqrt(difference), 5e-6 * std::sqrt(norm)) << slot.name;
  }
}

TEST_P(EveryTrainableArchitecture, SharedPromptsGiveTheSameBitsWithAnyThreadsAndRecomputedLayers) {
  const auto parameters = random_parameters(tiny_config(GetParam().first, GetParam().second), 15);
  const Responses responses;
  for (const auto precision : {Precision::f32, Precision::bf16}) {
    const auto with = [&](int threads, size_t budget) {
      return gradient_of_responses(parameters, responses, Prompts::shared, budget, threads, precision);
    };
    const auto one = with(1, kPlenty);
    for (const int threads : {2, 3, 7}) EXPECT_EQ(one, with(threads, kPlenty)) << threads;
    EXPECT_EQ(one, with(2, 0));
  }
}

TEST(TrainingPass, AFailureInOnePartReachesTheCallerAndNobodyWaitsForEver) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 9);
  const Weights weights = parameters.weights();
  Gradients gradients(parameters);
  TrainingPass pass(weights, Precision::f32, kPlenty);
  const PackedBatch batch = pack(many_sequences());
  std::vector<int64_t> rows(batch.tokens.size());
  std::iota(rows.begin(), rows.end(), 0);
  const auto fails_behind = [&](size_t row) {
    pass.accumulate(gradients, batch, rows,
                    [&](std::span<float>, std::span<float>, std::span<const float>, size_t first) {
                      if (first >= row) fail("no head for row ", first);
                    });
  };
  EXPECT_THROW(fails_behind(0), Error);
  EXPECT_THROW(fails_behind(500), Error);
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
