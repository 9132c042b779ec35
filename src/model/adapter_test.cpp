#include "model/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/vocab_head.h"
#include "kernels/vocab_rows.h"
#include "model/decode.h"
#include "model/training_pass.h"
#include "support/adapters.h"
#include "support/model_files.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::model {
namespace {

using test::NaiveModel;
using test::random_adapter;
using test::random_parameters;
using test::tiny_config;
using testing::HasSubstr;
using Sequences = std::vector<std::vector<Token>>;

const Sequences kSequences = {{3, 5, 8, 1, 30, 36, 0, 7, 12}, {9}, {4, 4, 4, 20, 11, 2}};
const AdapterConfig kAllLinear = {
    .rank = 3, .alpha = 4, .targets = {}, .ranks = {{"v_proj", 5}}, .alphas = {}};

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
};

// Its gradient at whatever `gradients` has slots for.
std::vector<float> gradient_of(Gradients gradients, const Weights& weights, const Sequences& sequences,
                               const PassSettings& settings = {}) {
  TrainingPass pass(settings.precision, settings.budget);
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
  pass.finish(gradients);
  return copy(gradients.values());
}

std::vector<float> adapter_gradient(const Adapter& adapter, const Weights& weights,
                                    const Sequences& sequences = kSequences,
                                    const PassSettings& settings = {}) {
  return gradient_of({adapter.slots(), weights.config.num_layers}, weights, sequences, settings);
}

std::vector<double> in_double(std::span<const float> values) { return {values.begin(), values.end()}; }

std::span<const float> slot_values(const Adapter& adapter, size_t slot) {
  const ParameterSlot& s = adapter.slots()[slot];
  return adapter.values().subspan(static_cast<size_t>(s.offset), static_cast<size_t>(s.size));
}

class EveryAdaptedArchitecture : public testing::TestWithParam<std::pair<Architecture, bool>> {};
INSTANTIATE_TEST_SUITE_P(Model, EveryAdaptedArchitecture,
                         testing::Values(std::pair{Architecture::qwen3, true},
                                         std::pair{Architecture::qwen3, false},
                                         std::pair{Architecture::qwen2, true},
                                         std::pair{Architecture::llama, false}));

TEST_P(EveryAdaptedArchitecture, LogitsAreThoseOfTheOracleWithMergedMatrices) {
  const auto base = random_parameters(tiny_config(GetParam().first, GetParam().second), 4);
  const Adapter adapter = random_adapter(base.config(), kAllLinear, 5);
  NaiveModel oracle(base);
  for (size_t i = 0; i < adapter.matrices().size(); ++i) {
    const AdapterMatrix& m = adapter.matrices()[i];
    auto& w = oracle.tensor(m.module + ".weight");
    w = test::merged_in_double(m, w, in_double(slot_values(adapter, 2 * i)),
                               in_double(slot_values(adapter, 2 * i + 1)));
  }
  const Weights weights = adapter.on(base.weights());
  const PackedBatch batch = pack(kSequences);
  Workspace workspace;
  Buffer hidden(batch.tokens.size() * 20);
  forward(hidden, weights, batch, Precision::f32, workspace);
  std::vector<float> logits(batch.tokens.size() * 37);
  weights.head.apply(logits, hidden, Precision::f32);
  size_t row = 0;
  for (const auto& sequence : kSequences)
    for (const auto& want : oracle.logits(sequence)) {
      for (size_t v = 0; v < 37; ++v) ASSERT_NEAR(logits[row * 37 + v], want[v], 2e-4);
      ++row;
    }
}

TEST_P(EveryAdaptedArchitecture, GradientEqualsFiniteDifferencesOfTheOracleInEveryTarget) {
  const auto base = random_parameters(tiny_config(GetParam().first, GetParam().second), 4);
  const Adapter adapter = random_adapter(base.config(), kAllLinear, 6);
  ASSERT_EQ(adapter.slots().size(), 2u * 7 * 2);  // A and B of seven projections in two layers
  const auto gradient = adapter_gradient(adapter, adapter.on(base.weights()));
  ASSERT_EQ(gradient.size(), adapter.values().size());
  NaiveModel oracle(base);
  std::vector<std::vector<double>> base_values;
  const auto merge = [&](size_t i, const std::vector<double>& a, const std::vector<double>& b) {
    const AdapterMatrix& m = adapter.matrices()[i];
    oracle.tensor(m.module + ".weight") = test::merged_in_double(m, base_values[i], a, b);
  };
  const auto values = [&](size_t slot) { return in_double(slot_values(adapter, slot)); };
  for (size_t i = 0; i < adapter.matrices().size(); ++i) {
    base_values.push_back(oracle.tensor(adapter.matrices()[i].module + ".weight"));
    merge(i, values(2 * i), values(2 * i + 1));
  }
  for (size_t s = 0; s < adapter.slots().size(); ++s) {
    const ParameterSlot& slot = adapter.slots()[s];
    auto a = values(s / 2 * 2), b = values(s / 2 * 2 + 1);
    double difference = 0, norm = 0;
    for (int64_t at = 0; at < slot.size; at += std::max<int64_t>(1, slot.size / 4)) {
      double& value = (s % 2 == 0 ? a : b)[static_cast<size_t>(at)];
      const double middle = value, step = 1e-5;
      const auto loss_at = [&](double x) {
        value = x;
        merge(s / 2, a, b);
        return naive_loss(oracle);
      };
      const double want = (loss_at(middle + step) - loss_at(middle - step)) / (2 * step),
                   got = gradient[static_cast<size_t>(slot.offset + at)];
      loss_at(middle);
      difference += (got - want) * (got - want);
      norm += want * want;
    }
    EXPECT_LT(std::sqrt(difference), 3e-4 * std::sqrt(norm) + 2e-6) << slot.name;
  }
}

TEST_P(EveryAdaptedArchitecture, RecomputedLayersPackedCopiesAndThreadsGiveTheSameBits) {
  const auto base = random_parameters(tiny_config(GetParam().first, GetParam().second), 5);
  const Adapter adapter = random_adapter(base.config(), kAllLinear, 7);
  const Weights weights = adapter.on(base.weights());
  const size_t before = num_threads(), one_layer = trace_bytes_per_token(base.config()) * 20;
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles}) {
    const auto expected = adapter_gradient(adapter, weights, kSequences, {.precision = precision});
    for (const size_t budget : {size_t{0}, one_layer})
      EXPECT_EQ(expected, adapter_gradient(adapter, weights, kSequences, {budget, precision}));
    EXPECT_EQ(expected, adapter_gradient(adapter, pack_weights(weights, precision, true), kSequences,
                                         {.precision = precision}));
    set_num_threads(3);
    EXPECT_EQ(expected, adapter_gradient(adapter, weights, kSequences, {.precision = precision}));
    set_num_threads(before);
  }
}

// With r = inputs, A = I and B = 0 the merged matrix is W; with a scale of 2 no product is rounded otherwise.
TEST_P(EveryAdaptedArchitecture, WithTheIdentityAsATheGradientOfBIsTheScaleTimesTheWholeGradient) {
  ModelConfig c = tiny_config(GetParam().first, GetParam().second);
  c.intermediate_size = 20;  // every rank of `inputs` is possible
  c.num_heads = c.num_kv_heads = 4;
  c.head_dim = 6;
  const auto base = random_parameters(c, 6);
  Adapter adapter(
      c, {.rank = 20, .alpha = 40, .targets = {"q_proj", "up_proj", "gate_proj"}, .ranks = {}, .alphas = {}});
  for (size_t i = 0; i < adapter.matrices().size(); ++i)
    for (size_t d = 0; d < 20; ++d)
      adapter.values()[static_cast<size_t>(adapter.slots()[2 * i].offset) + 21 * d] = 1;
  const auto of_adapter = adapter_gradient(adapter, adapter.on(base.weights()));
  const auto of_all = gradient_of(Gradients(c), base.weights(), kSequences);
  for (size_t i = 0; i < adapter.matrices().size(); ++i) {
    const ParameterSlot& b = adapter.slots()[2 * i + 1];
    const auto slot = std::ranges::find_if(base.slots(), [&](const ParameterSlot& candidate) {
      return candidate.name == adapter.matrices()[i].module + ".weight";
    });
    for (int64_t at = 0; at < b.size; ++at)
      ASSERT_EQ(of_adapter[static_cast<size_t>(b.offset + at)],
                2 * of_all[static_cast<size_t>(slot->offset + at)])
          << b.name;
  }
}

TEST(Adapter, DecodedLogitsEqualTheForwardPassBitForBitPackedAndMerged) {
  for (const auto architecture : {Architecture::qwen3, Architecture::qwen2, Architecture::qwen3_moe}) {
    const auto base = random_parameters(tiny_config(architecture, false), 11);
    const Adapter adapter = random_adapter(base.config(), kAllLinear, 12);
    const Weights weights = adapter.on(base.weights());
    const std::vector<Token> tokens = {3, 5, 8, 1, 30, 36, 0, 7, 12, 4, 4, 9};
    for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles}) {
      Workspace workspace;
      Buffer hidden(tokens.size() * 20);
      forward(hidden, weights, pack({tokens}), precision, workspace);
      std::vector<float> logits(37);
      weights.head.apply(logits, std::as_const(hidden).span().last(20), precision);
      for (const Weights& form : {weights, pack_weights(weights, precision)}) {
        const Decoder decoder(form, precision);
        DecodeMemory memory;
        KvCache cache(base.config(), precision, 4, 32);
        const int32_t page = cache.allocate();
        std::vector<float> last;
        for (size_t t = 0; t < tokens.size(); ++t) {
          const DecodeRows group{std::span(tokens).subspan(t, 1), static_cast<int64_t>(t), &page, true};
          decoder.step(memory, cache, std::span(&group, 1),
                       [&](size_t, std::span<float> row) { last = copy(row); });
        }
        EXPECT_EQ(last, logits);
      }
    }
  }
}

TEST(Adapter, BeginsAsPeftDoesAndChangesNothing) {
  const auto base = random_parameters(tiny_config(Architecture::qwen3), 3);
  Adapter adapter(base.config(), kAllLinear), same(base.config(), kAllLinear),
      other(base.config(), kAllLinear);
  adapter.initialize(1);
  same.initialize(1);
  other.initialize(2);
  EXPECT_EQ(copy(adapter.values()), copy(same.values()));
  EXPECT_NE(copy(adapter.values()), copy(other.values()));
  for (size_t i = 0; i < adapter.matrices().size(); ++i) {
    const float bound = 1 / std::sqrt(static_cast<float>(adapter.matrices()[i].inputs));
    float largest = 0;
    for (const float value : slot_values(adapter, 2 * i)) largest = std::max(largest, std::abs(value));
    EXPECT_LE(largest, bound);
    EXPECT_GT(largest, 0.8f * bound);
    for (const float value : slot_values(adapter, 2 * i + 1)) EXPECT_EQ(value, 0);
  }
  const auto hidden_of = [&](const Weights& weights) {
    Workspace workspace;
    Buffer hidden(pack(kSequences).tokens.size() * 20);
    forward(hidden, weights, pack(kSequences), Precision::f32, workspace);
    return copy(hidden);
  };
  EXPECT_EQ(hidden_of(base.weights()), hidden_of(adapter.on(base.weights())));
}

TEST(Adapter, RanksOfTargetsAndScalesAreItsConfigs) {
  const ModelConfig c = tiny_config(Architecture::llama);
  const AdapterConfig config = {.rank = 4,
                                .alpha = 8,
                                .rslora = true,
                                .targets = {"q_proj", "v_proj"},
                                .ranks = {{"v_proj", 9}},
                                .alphas = {{"v_proj", 6}}};
  const Adapter adapter(c, config);
  ASSERT_EQ(adapter.matrices().size(), 4u);
  EXPECT_EQ(adapter.matrices()[0], (AdapterMatrix{"model.layers.0.self_attn.q_proj", 24, 20, 4, 4.0f}));
  EXPECT_EQ(adapter.matrices()[1], (AdapterMatrix{"model.layers.0.self_attn.v_proj", 12, 20, 9, 2.0f}));
  EXPECT_EQ(adapter.slots()[0].name, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(adapter.slots()[3].name, "base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight");
  EXPECT_EQ(Adapter(c, {.rank = 1, .targets = {}, .ranks = {}, .alphas = {}}).config().targets,
            (std::vector<std::string>{"down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj",
                                      "v_proj"}));
}

TEST(Adapter, RefusesImpossibleRanksAndUnknownTargets) {
  const ModelConfig c = tiny_config(Architecture::qwen3);
  const auto error = [&](const AdapterConfig& config) -> std::string {
    try {
      Adapter(c, config);
    } catch (const Error& refused) {
      return refused.what();
    }
    return "accepted";
  };
  EXPECT_THAT(error({.rank = 0, .targets = {}, .ranks = {}, .alphas = {}}), HasSubstr("rank 0"));
  EXPECT_THAT(error({.rank = 13, .targets = {"k_proj"}, .ranks = {}, .alphas = {}}),
              HasSubstr("rank 13 of model.layers.0.self_attn.k_proj, expected 1 to 12"));
  EXPECT_THAT(error({.targets = {"c_attn"}, .ranks = {}, .alphas = {}}),
              HasSubstr("unknown target 'c_attn'"));
  EXPECT_THAT(error({.targets = {"lm_head"}, .ranks = {}, .alphas = {}}), HasSubstr("not adapted"));
  EXPECT_THAT(error({.rank = 2, .targets = {}, .ranks = {{"fc1", 3}}, .alphas = {}}),
              HasSubstr("unknown target 'fc1'"));
}

}  // namespace
}  // namespace ropd::model
