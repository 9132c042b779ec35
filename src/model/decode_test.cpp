#include "model/decode.h"

#include <gtest/gtest.h>

#include "base/threads.h"
#include "support/naive_model.h"

namespace ropd::model {
namespace {

using test::random_parameters;
using test::tiny_config;

// Logits of every position when the tokens arrive in chunks of the given sizes, next to a second sequence.
std::vector<std::vector<float>> decoded(const Parameters& parameters, Precision precision,
                                        const std::vector<Token>& tokens, const std::vector<size_t>& chunks,
                                        int64_t page_tokens, bool with_company) {
  const Weights weights = pack_weights(parameters.weights(), precision);
  const Decoder decoder(weights, precision);
  DecodeMemory memory;
  KvCache cache(weights.config, precision, 16, page_tokens);
  std::vector<int32_t> pages, other_pages;
  for (int i = 0; i < 4; ++i) {
    pages.push_back(cache.allocate());
    other_pages.push_back(cache.allocate());
  }
  const std::vector<Token> company(tokens.rbegin(), tokens.rend());
  std::vector<std::vector<float>> logits;
  size_t done = 0;
  for (const size_t chunk : chunks) {
    std::vector<DecodeRows> groups;
    if (with_company)
      groups.push_back(
          {std::span(company).subspan(done, chunk), static_cast<int64_t>(done), other_pages.data(), true});
    groups.push_back(
        {std::span(tokens).subspan(done, chunk), static_cast<int64_t>(done), pages.data(), true});
    decoder.step(memory, cache, groups, [&](size_t group, std::span<float> row) {
      if (group + 1 == groups.size()) logits.emplace_back(row.begin(), row.end());
    });
    done += chunk;
  }
  return logits;
}

std::vector<Token> some_tokens(size_t count) {
  std::vector<Token> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(static_cast<Token>((i * 7 + 3) % 37));
  return tokens;
}

class Decoding : public testing::TestWithParam<Architecture> {};
INSTANTIATE_TEST_SUITE_P(Model, Decoding,
                         testing::Values(Architecture::qwen3, Architecture::qwen2, Architecture::llama,
                                         Architecture::qwen3_moe));

// One token after the other, next to a second sequence, and all tokens at once.
void expect_equal_to_forward_pass(const Parameters& parameters, Precision precision) {
  const auto tokens = some_tokens(70);
  PackedBatch batch;
  batch.append(tokens);
  Workspace workspace;
  const Weights weights = parameters.weights();
  Buffer hidden(tokens.size() * static_cast<size_t>(weights.config.hidden_size));
  forward(hidden, weights, batch, precision, workspace);
  std::vector<float> logits(tokens.size() * 37);
  weights.head.apply(logits, hidden, precision);
  const auto one_by_one = decoded(parameters, precision, tokens, std::vector<size_t>(70, 1), 32, true);
  for (size_t t = 0; t < tokens.size(); ++t)
    EXPECT_EQ(one_by_one[t], std::vector<float>(logits.begin() + t * 37, logits.begin() + (t + 1) * 37))
        << "position " << t;
}

TEST_P(Decoding, EqualsTheForwardPassBitForBit) {
  const auto parameters = random_parameters(tiny_config(GetParam(), false), 11);
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles})
    expect_equal_to_forward_pass(parameters, precision);
}

// Heads so wide that the rows of the forward pass are made ready in several chunks, by several threads.
TEST_P(Decoding, EqualsTheForwardPassWithWideHeads) {
  ModelConfig config = tiny_config(GetParam(), false);
  config.num_heads = 8;
  config.num_kv_heads = 4;
  config.head_dim = 64;
  const auto parameters = random_parameters(config, 13);
  const size_t before = num_threads();
  for (const size_t threads : {1, 3}) {
    set_num_threads(threads);
    for (const auto precision : {Precision::f32, Precision::bf16})
      expect_equal_to_forward_pass(parameters, precision);
  }
  set_num_threads(before);
}

// Whether a token is given or guessed, its row is the same; a sequence has rows of logits from its last token on.
TEST_P(Decoding, GuessesHaveTheLogitsOfTokens) {
  const auto parameters = random_parameters(tiny_config(GetParam(), false), 12);
  const auto tokens = some_tokens(70);
  for (const auto precision : {Precision::f32, Precision::bf16}) {
    const auto one_by_one = decoded(parameters, precision, tokens, std::vector<size_t>(70, 1), 32, false);
    const Decoder decoder(pack_weights(parameters.weights(), precision), precision);
    DecodeMemory memory;
    KvCache cache(parameters.config(), precision, 8, 32);
    std::vector<std::vector<int32_t>> pages(2);
    for (auto& table : pages)
      for (int i = 0; i < 3; ++i) table.push_back(cache.allocate());
    const auto rows_of = [&](size_t sequence, size_t num_tokens, size_t num_guesses) {
      return DecodeRows{.tokens = std::span(tokens).first(num_tokens),
                        .first_position = 0,
                        .pages = pages[sequence].data(),
                        .wants_logits = true,
                        .guesses = std::span(tokens).subspan(num_tokens, num_guesses)};
    };
    const std::vector<DecodeRows> groups = {rows_of(0, 40, 5), rows_of(1, 1, 2)};
    decoder.step(memory, cache, groups, [&](size_t group, std::span<float> logits) {
      const size_t first = groups[group].tokens.size() - 1, count = 1 + groups[group].guesses.size();
      ASSERT_EQ(logits.size(), count * 37);
      for (size_t i = 0; i < count; ++i)
        EXPECT_EQ(one_by_one[first + i],
                  std::vector<float>(logits.begin() + i * 37, logits.begin() + (i + 1) * 37))
            << "position " << first + i;
    });
  }
}

TEST_P(Decoding, DoesNotDependOnChunksPagesOrCompany) {
  const auto parameters = random_parameters(tiny_config(GetParam(), true), 12);
  const auto tokens = some_tokens(70);
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles}) {
    const auto last = decoded(parameters, precision, tokens, {70}, 32, false).back();
    EXPECT_EQ(decoded(parameters, precision, tokens, {1, 40, 29}, 64, true).back(), last);
    EXPECT_EQ(decoded(parameters, precision, tokens, {33, 37}, 96, false).back(), last);
  }
}

}  // namespace
}  // namespace ropd::model
