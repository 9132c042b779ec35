#include "rollout/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "kernels/vocab_rows.h"

namespace ropd::rollout {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

std::vector<float> random_logits(size_t size, float scale, uint64_t key = 0) {
  std::vector<float> logits(size);
  for (size_t i = 0; i < size; ++i) {
    // Sum of uniforms: near enough to normal.
    double sum = -6;
    for (uint32_t j = 0; j < 12; ++j)
      sum += random_uniform(7, Purpose::test, {key, static_cast<uint32_t>(i), j});
    logits[i] = scale * static_cast<float>(sum);
  }
  return logits;
}

Draw draw_copy(std::vector<float> logits, const SamplingConfig& config, const DrawKey& key) {
  return draw(logits, config, key);
}

// Counts of `draws` draws, by token.
std::vector<double> frequencies(const std::vector<float>& logits, const SamplingConfig& config,
                                uint32_t draws) {
  std::vector<double> counts(logits.size(), 0.0);
  for (uint32_t i = 0; i < draws; ++i)
    counts[static_cast<size_t>(
        draw_copy(logits, config, {.seed = 5, .query = 9, .sample = i, .position = 3}).token)] += 1.0 / draws;
  return counts;
}

std::vector<double> softmax(const std::vector<float>& logits, double temperature = 1) {
  std::vector<double> p;
  double sum = 0;
  for (const float x : logits) sum += p.emplace_back(std::exp(x / temperature));
  for (double& x : p) x /= sum;
  return p;
}

// Pearson's statistic over entries of at least `least` probability, the others together, minus its mean over
// its deviation.
double deviation_of_chi_square(const std::vector<double>& found, const std::vector<double>& expected,
                               double draws, double least) {
  double chi = 0, rest_found = 0, rest_expected = 0, freedom = -1;
  for (size_t i = 0; i < found.size(); ++i) {
    if (expected[i] * draws < least) {
      rest_found += found[i];
      rest_expected += expected[i];
      continue;
    }
    chi += draws * (found[i] - expected[i]) * (found[i] - expected[i]) / expected[i];
    freedom += 1;
  }
  if (rest_expected * draws >= least) {
    chi += draws * (rest_found - rest_expected) * (rest_found - rest_expected) / rest_expected;
    freedom += 1;
  }
  return (chi - freedom) / std::sqrt(2 * freedom);
}

TEST(Sampler, DrawsFromTheSoftmax) {
  const auto logits = random_logits(300, 2);
  EXPECT_LT(std::abs(deviation_of_chi_square(frequencies(logits, {}, 20000), softmax(logits), 20000, 5)), 4);
}

TEST(Sampler, DrawsFromTheSoftmaxAtATemperature) {
  const auto logits = random_logits(50, 2);
  const auto found = frequencies(logits, {.temperature = 0.6}, 20000);
  EXPECT_LT(std::abs(deviation_of_chi_square(found, softmax(logits, 0.6), 20000, 5)), 4);
  EXPECT_GT(deviation_of_chi_square(found, softmax(logits, 0.7), 20000, 5), 4) << "the test can tell";
}

TEST(Sampler, DrawsFromEveryBlockOfALongRow) {
  auto logits = random_logits(5 * kernels::kVocabBlock + 17, 0.5f);
  // Five tokens of about 10% in different blocks, one of them the very last entry.
  const std::vector<size_t> likely = {0, 2047, 2048, 7000, logits.size() - 1};
  for (const size_t i : likely) logits[i] = 7;
  const auto expected = softmax(logits);
  const auto found = frequencies(logits, {}, 4000);
  for (const size_t i : likely) EXPECT_NEAR(found[i], expected[i], 4 * std::sqrt(expected[i] / 4000)) << i;
}

// The plain definition: the first entry whose cumulative probability exceeds the uniform number.
TEST(Sampler, InvertsTheDistributionFunctionInOrderOfIds) {
  const auto logits = random_logits(9000, 1.5f);
  const auto p = softmax(logits);
  for (uint32_t i = 0; i < 300; ++i) {
    const double u = random_uniform(5, Purpose::sampling, {1, i, 0});
    double sum = 0;
    size_t token = 0;
    while ((sum += p[token]) <= u) ++token;
    EXPECT_EQ(draw_copy(logits, {}, {.seed = 5, .query = 1, .sample = i, .position = 0}).token,
              static_cast<Token>(token));
  }
}

TEST(Sampler, GivesTheLogprobOfTheFullSoftmaxBitForBit) {
  const auto logits = random_logits(5000, 3);
  for (const SamplingConfig& config :
       {SamplingConfig{}, SamplingConfig{.temperature = 0.7}, SamplingConfig{.top_p = 0.8},
        SamplingConfig{.temperature = 1.3, .top_k = 20},
        SamplingConfig{.temperature = 0.5, .greedy = true}}) {
    auto divided = logits;
    kernels::divide_by_temperature(divided, static_cast<float>(config.temperature));
    const float log_sum_exp = kernels::row_log_sum_exp(divided);
    for (uint32_t i = 0; i < 20; ++i) {
      const Draw result = draw_copy(logits, config, {.seed = 1, .sample = i});
      EXPECT_EQ(result.logprob, divided[static_cast<size_t>(result.token)] - log_sum_exp);
    }
  }
}

TEST(Sampler, DependsOnEveryPartOfItsKey) {
  const std::vector<float> logits(1000, 0.0f);
  const DrawKey key{.seed = 1, .query = 2, .sample = 3, .position = 4};
  const Token token = draw_copy(logits, {}, key).token;
  EXPECT_EQ(draw_copy(logits, {}, key).token, token);
  for (int part = 0; part < 4; ++part) {
    DrawKey other = key;
    if (part == 0) ++other.seed;
    if (part == 1) ++other.query;
    if (part == 2) ++other.sample;
    if (part == 3) ++other.position;
    EXPECT_NE(draw_copy(logits, {}, other).token, token) << part;
  }
}

TEST(Sampler, NeverDrawsAnImpossibleToken) {
  std::vector<float> logits(4100, kImpossible);
  logits[4097] = -3;
  logits[2050] = -2;
  for (uint32_t i = 0; i < 50; ++i)
    for (const double top_p : {1.0, 0.999}) {
      const Token token = draw_copy(logits, {.top_p = top_p}, {.sample = i}).token;
      EXPECT_TRUE(token == 2050 || token == 4097) << token;
    }
  EXPECT_EQ(draw_copy(logits, {.top_k = 4000}, {.sample = 1}).is_valid, true);
  EXPECT_EQ(draw_copy(logits, {.greedy = true}, {}).token, 2050);
}

TEST(Sampler, ACertainTokenHasLogprobZero) {
  std::vector<float> logits(10, kImpossible);
  logits[4] = 12;
  const Draw result = draw_copy(logits, {}, {});
  EXPECT_EQ(result.token, 4);
  EXPECT_EQ(result.logprob, 0.0f);
}

TEST(Sampler, ReportsRowsThatAreNoDistribution) {
  for (const float bad : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity()})
    for (const size_t place : {size_t{0}, size_t{15}, size_t{2500}, size_t{4999}}) {
      auto logits = random_logits(5000, 1);
      logits[place] = bad;
      EXPECT_FALSE(draw_copy(logits, {}, {}).is_valid) << bad << " at " << place;
      EXPECT_FALSE(draw_copy(logits, {.greedy = true}, {}).is_valid) << bad << " at " << place;
      EXPECT_FALSE(draw_copy(logits, {.top_p = 0.5}, {}).is_valid) << bad << " at " << place;
    }
  EXPECT_FALSE(draw_copy(std::vector<float>(100, kImpossible), {}, {}).is_valid);
}

TEST(Sampler, GreedyTakesTheLowestOfTiedMaxima) {
  std::vector<float> logits(6000, 1.0f);
  logits[2300] = logits[2301] = logits[5000] = 2.0f;
  EXPECT_EQ(draw_copy(logits, {.greedy = true}, {}).token, 2300);
  EXPECT_EQ(draw_copy(logits, {.top_k = 1}, {}).token, 2300);
}

TEST(Sampler, TopKKeepsTheLikeliestWithTiesToTheLowerId) {
  std::vector<float> logits(3000, 0.0f);
  logits[2999] = 1;
  std::map<Token, int> seen;
  for (uint32_t i = 0; i < 300; ++i) ++seen[draw_copy(logits, {.top_k = 3}, {.sample = i}).token];
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen.count(2999) && seen.count(0) && seen.count(1));
}

TEST(Sampler, TopKOfBothMethodsAgreesWithARescaledSoftmax) {
  const auto logits = random_logits(400, 1);
  for (const int64_t k : {5, 256, 257, 380}) {  // streamed up to 256, selected above
    auto kept = logits;
    auto sorted = logits;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (float& x : kept)
      if (x < sorted[static_cast<size_t>(k) - 1]) x = kImpossible;
    const auto found = frequencies(logits, {.top_k = k}, 2000);
    EXPECT_LT(std::abs(deviation_of_chi_square(found, softmax(kept), 2000, 5)), 4) << k;
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(kept[i] != kImpossible || found[i] == 0) << k;
  }
}

TEST(Sampler, TopKOfTheWholeVocabularyChangesNothing) {
  const auto logits = random_logits(700, 1);
  for (uint32_t i = 0; i < 50; ++i)
    EXPECT_EQ(draw_copy(logits, {.top_k = 700}, {.sample = i}).token,
              draw_copy(logits, {}, {.sample = i}).token);
}

TEST(Sampler, TopPKeepsTheSmallestSetOfEnoughProbability) {
  // 0.4, 0.3, 0.2, 0.1: the set is the one whose sum first reaches p.
  const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};
  const auto drawn = [&](double p) {
    std::vector<bool> seen(4, false);
    for (uint32_t i = 0; i < 400; ++i)
      seen[static_cast<size_t>(draw_copy(logits, {.top_p = p}, {.sample = i}).token)] = true;
    return seen;
  };
  EXPECT_EQ(drawn(1e-6), (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(drawn(0.39), (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(drawn(0.41), (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(drawn(0.71), (std::vector<bool>{false, true, true, true}));
  EXPECT_EQ(drawn(0.91), (std::vector<bool>{true, true, true, true}));
}

TEST(Sampler, TopPDrawsFromTheRescaledNucleus) {
  const auto logits = random_logits(800, 2);
  auto sorted = logits;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const auto p = softmax(sorted);
  double sum = 0;
  size_t count = 0;
  while (sum < 0.9) sum += p[count++];
  auto kept = logits;
  for (float& x : kept)
    if (x < sorted[count - 1]) x = kImpossible;
  const auto found = frequencies(logits, {.top_p = 0.9}, 3000);
  EXPECT_LT(std::abs(deviation_of_chi_square(found, softmax(kept), 3000, 5)), 4);
}

TEST(Sampler, TopPBreaksTiesTowardsLowerIds) {
  const std::vector<float> logits(8, 0.0f);
  for (uint32_t i = 0; i < 200; ++i) EXPECT_LT(draw_copy(logits, {.top_p = 0.5}, {.sample = i}).token, 4);
}

TEST(Sampler, TopPAppliesToWhatTopKLeft) {
  // Top-k leaves 0.4 and 0.3, that is 0.571 and 0.429: p = 0.5 needs the first alone.
  const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};
  for (uint32_t i = 0; i < 100; ++i)
    EXPECT_EQ(draw_copy(logits, {.top_p = 0.5, .top_k = 2}, {.sample = i}).token, 1);
}

TEST(SamplingConfig, RefusesWhatIsNoDistribution) {
  EXPECT_NO_THROW(SamplingConfig{}.validate());
  for (const double temperature : {0.0, -1.0, 1e-300, double(INFINITY), double(NAN)})
    EXPECT_THROW(SamplingConfig{.temperature = temperature}.validate(), Error) << temperature;
  for (const double top_p : {0.0, -0.1, 1.0001, double(NAN)})
    EXPECT_THROW(SamplingConfig{.top_p = top_p}.validate(), Error) << top_p;
  EXPECT_THROW(SamplingConfig{.top_k = -1}.validate(), Error);
}

}  // namespace
}  // namespace ropd::rollout
