#include "model/forward.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/threads.h"
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
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles}) {
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
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles}) {
    const auto own = predicting_states(parameters.weights(), responses, Prompts::each_its_own, precision);
    EXPECT_EQ(own, predicting_states(parameters.weights(), responses, Prompts::shared, precision));
    // In one piece, as a large model takes them.
    Weights together = parameters.weights();
    together.execution.sharing = Sharing::products;
    EXPECT_EQ(own, predicting_states(together, responses, Prompts::shared, precision));
    EXPECT_EQ(own, predicting_states(together, responses, Prompts::each_its_own, precision));
  }
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
