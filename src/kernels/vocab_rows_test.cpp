#include "kernels/vocab_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/elementary.h"
#include "support/gradient_check.h"

namespace ropd::kernels {
namespace {

using ropd::test::gradient_check;
using ropd::test::random_values;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double exact_log_sum_exp(std::span<const float> x) {
  const double top = *std::max_element(x.begin(), x.end());
  double total = 0;
  for (float value : x) total += std::exp(value - top);
  return top + std::log(total);
}

std::vector<double> exact_logprobs(std::span<const float> x) {
  const double lse = exact_log_sum_exp(x);
  std::vector<double> result;
  for (float value : x) result.push_back(value - lse);
  return result;
}

// The promised order of operations, written plainly.
float naive_log_sum_exp(std::span<const float> x) {
  float top = 0, total = 0;
  for (size_t begin = 0; begin < x.size(); begin += kVocabBlock) {
    const auto block = x.subspan(begin, std::min<size_t>(kVocabBlock, x.size() - begin));
    const float block_top = *std::max_element(block.begin(), block.end());
    float lanes[16] = {};
    for (size_t i = 0; i < block.size(); ++i) lanes[i % 16] += exp(block[i] - block_top);
    for (size_t half = 8; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    if (begin == 0) {
      top = block_top;
      total = lanes[0];
    } else if (block_top > top) {
      total = total * exp(top - block_top) + lanes[0];
      top = block_top;
    } else {
      total += lanes[0] * exp(block_top - top);
    }
  }
  return top + log(total);
}

TEST(RowLogSumExp, HasTheBitsOfTheNaiveTwinOverOddSizes) {
  for (const size_t count : {1, 2, 15, 17, 300, 2047, 2048, 2049, 5000, 10007}) {
    const auto x = random_values(count, static_cast<uint32_t>(count), 4.0f);
    EXPECT_EQ(row_log_sum_exp(x), naive_log_sum_exp(x)) << count;
    EXPECT_NEAR(row_log_sum_exp(x), exact_log_sum_exp(x), 2e-6) << count;
    EXPECT_EQ(row_statistics(x).log_sum_exp, row_log_sum_exp(x));
  }
}

TEST(RowLogSumExp, TreatsMinusInfinityAsImpossible) {
  std::vector<float> x(5000, -kInfinity);
  EXPECT_EQ(row_log_sum_exp(x), -kInfinity);
  x[3000] = 2.0f;  // the first block has nothing possible
  EXPECT_EQ(row_log_sum_exp(x), 2.0f);
  EXPECT_EQ(row_statistics(x).entropy, 0.0f);
  x[10] = 2.0f;
  EXPECT_NEAR(row_statistics(x).entropy, std::log(2.0), 1e-6);
}

TEST(RowLogSumExp, KeepsNaN) {
  for (const size_t at : {0, 7, 2500, 4999}) {
    std::vector<float> x(5000, -kInfinity);
    x[at] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(row_log_sum_exp(x))) << at;
    x[(at + 100) % 5000] = 1.0f;
    EXPECT_TRUE(std::isnan(row_log_sum_exp(x))) << at;
  }
}

TEST(RowStatistics, EntropyEqualsTheExactOne) {
  for (const size_t count : {1, 100, 5000}) {
    const auto x = random_values(count, 5, 3.0f);
    double entropy = 0;
    for (double logprob : exact_logprobs(x)) entropy -= std::exp(logprob) * logprob;
    EXPECT_NEAR(row_statistics(x).entropy, entropy, 3e-6);
  }
}

TEST(DivideByTemperature, DividesEveryLogit) {
  auto x = random_values(37, 6);
  const auto before = x;
  divide_by_temperature(x, 1.0f);
  EXPECT_EQ(x, before);
  divide_by_temperature(x, 0.7f);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i], before[i] / 0.7f);
}

struct Top {
  std::vector<float> values;
  std::vector<int32_t> ids;
};
Top top_of(std::span<const float> x, size_t k, size_t block = 2048) {
  Top top{std::vector<float>(k), std::vector<int32_t>(k)};
  TopEntries entries(top.values, top.ids);
  for (size_t begin = 0; begin < x.size(); begin += block) {
    const auto part = x.subspan(begin, std::min(block, x.size() - begin));
    entries.add(part, static_cast<int32_t>(begin), *std::max_element(part.begin(), part.end()));
  }
  return top;
}

TEST(TopEntries, EqualASortWithTiesToTheLowerId) {
  for (const size_t count : {16, 100, 2049, 9000})
    for (const size_t k : {1, 2, 16}) {
      auto x = random_values(count, static_cast<uint32_t>(count + k));
      for (float& value : x) value = std::round(value * 8) / 8;  // many ties
      std::vector<int32_t> order(count);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return x[a] > x[b]; });
      order.resize(k);
      EXPECT_EQ(top_of(x, k).ids, order);
      EXPECT_EQ(top_of(x, k, 7).ids, order);
    }
}

TEST(TopEntries, AllEqualGivesTheLowestIds) {
  const std::vector<float> x(3000, 1.5f);
  EXPECT_EQ(top_of(x, 3).ids, (std::vector<int32_t>{0, 1, 2}));
}

TEST(TopEntries, FillUpWithImpossibleEntries) {
  std::vector<float> x(50, -kInfinity);
  x[20] = 1.0f;
  const Top top = top_of(x, 3);
  EXPECT_EQ(top.ids, (std::vector<int32_t>{20, 0, 1}));
  EXPECT_EQ(top.values[1], -kInfinity);
}

TEST(ScoreRow, HasTheStatisticsAndTheLargestLogprobsOfTheRow) {
  for (const size_t count : {1, 26, 2048, 5000}) {
    const auto x = random_values(count, static_cast<uint32_t>(count));
    const size_t k = std::min<size_t>(count, 16);
    std::vector<float> logprobs(k);
    std::vector<int32_t> ids(k);
    const RowStatistics found = score_row(x, logprobs, ids), expected = row_statistics(x);
    EXPECT_EQ(found.log_sum_exp, expected.log_sum_exp);
    EXPECT_EQ(found.entropy, expected.entropy);
    EXPECT_EQ(ids, top_of(x, k).ids);
    for (size_t j = 0; j < k; ++j)
      EXPECT_EQ(logprobs[j], x[static_cast<size_t>(ids[j])] - expected.log_sum_exp);
  }
}

TEST(CandidateGradient, AgreesWithCentralDifferences) {
  auto logits = random_values(40, 7);
  const std::vector<int32_t> ids = {3, 17, 39, 3};  // an id may come twice
  const std::vector<float> coefficients = {0.5f, -1.25f, 0.75f, 0.25f};
  auto gradient = logits;
  candidate_gradient(gradient, ids, coefficients, 0.8f, row_log_sum_exp(logits));
  const auto loss = [&] {
    const auto logprobs = exact_logprobs(logits);
    double total = 0;
    for (size_t j = 0; j < ids.size(); ++j) total += coefficients[j] * logprobs[static_cast<size_t>(ids[j])];
    return 0.8 * total;
  };
  gradient_check("logits", logits, gradient, loss, 1e-5, 1e-3f);
}

TEST(CandidateGradient, IsExactlyZeroWithoutCoefficients) {
  auto logits = random_values(100, 8);
  candidate_gradient(logits, std::vector<int32_t>{1, 2}, std::vector<float>{0.0f, 0.0f}, 1.0f,
                     row_log_sum_exp(logits));
  for (float value : logits) EXPECT_EQ(value, 0.0f);
}

TEST(CrossEntropyGradient, AgreesWithCentralDifferences) {
  auto logits = random_values(30, 9);
  auto gradient = logits;
  const float loss_value = cross_entropy_gradient(gradient, 12, 2.0f);
  EXPECT_NEAR(loss_value, -exact_logprobs(logits)[12], 1e-6);
  gradient_check(
      "logits", logits, gradient, [&] { return -2.0 * exact_logprobs(logits)[12]; }, 1e-5, 1e-3f);
}

// The divergences in double.
double exact_divergence(std::span<const float> student, std::span<const float> teacher, double beta) {
  const auto s = exact_logprobs(student), t = exact_logprobs(teacher);
  double total = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    const double p = std::exp(s[i]), q = std::exp(t[i]);
    if (beta == 0) total += p * (s[i] - t[i]);
    if (beta == 1) total += q * (t[i] - s[i]);
    if (beta > 0 && beta < 1) {
      const double mix = std::log(beta * q + (1 - beta) * p);
      total += (1 - beta) * p * (s[i] - mix) + beta * q * (t[i] - mix);
    }
  }
  return total;
}

TEST(Divergences, EqualTheExactOnes) {
  for (const size_t count : {3, 100, 5001}) {
    const auto student = random_values(count, 10, 2.0f), teacher = random_values(count, 11, 2.0f);
    EXPECT_NEAR(reverse_kl(student, teacher), exact_divergence(student, teacher, 0), 3e-6);
    EXPECT_NEAR(forward_kl(student, teacher), exact_divergence(student, teacher, 1), 3e-6);
    EXPECT_NEAR(jensen_shannon(student, teacher, 0.3f), exact_divergence(student, teacher, 0.3f), 3e-6);
  }
}

TEST(Divergences, AreExactlyZeroWithZeroGradientForEqualRows) {
  const auto row = random_values(3001, 12, 5.0f);
  EXPECT_EQ(reverse_kl(row, row), 0.0);
  EXPECT_EQ(forward_kl(row, row), 0.0);
  EXPECT_EQ(jensen_shannon(row, row, 0.5f), 0.0);
  auto reverse = row, forward = row, jensen = row;
  reverse_kl_gradient(reverse, row, 1.0f);
  forward_kl_gradient(forward, row, 1.0f);
  jensen_shannon_gradient(jensen, row, 0.5f, 1.0f);
  for (size_t i = 0; i < row.size(); ++i) {
    ASSERT_EQ(reverse[i], 0.0f);
    ASSERT_EQ(forward[i], 0.0f);
    ASSERT_EQ(jensen[i], 0.0f);
  }
}

TEST(Divergences, GradientsAgreeWithCentralDifferences) {
  auto student = random_values(45, 13);
  const auto teacher = random_values(45, 14);
  const auto check = [&](const char* what, double beta, auto gradient_of) {
    auto gradient = student;
    const double value = gradient_of(gradient);
    EXPECT_NEAR(value, exact_divergence(student, teacher, beta), 1e-6);
    gradient_check(
        what, student, gradient, [&] { return 1.5 * exact_divergence(student, teacher, beta); }, 1e-5, 1e-3f);
  };
  check("reverse", 0, [&](std::span<float> row) { return reverse_kl_gradient(row, teacher, 1.5f); });
  check("forward", 1, [&](std::span<float> row) { return forward_kl_gradient(row, teacher, 1.5f); });
  check("jensen", 0.25,
        [&](std::span<float> row) { return jensen_shannon_gradient(row, teacher, 0.25f, 1.5f); });
}

TEST(Divergences, ImpossibleTokensOfTheStudentCountNothing) {
  std::vector<float> student = {0.0f, 0.0f, -kInfinity}, teacher = {0.0f, 0.0f, 0.0f};
  EXPECT_NEAR(reverse_kl(student, teacher), std::log(1.5), 1e-6);
  EXPECT_EQ(forward_kl(student, teacher), kInfinity);
  auto gradient = student;
  reverse_kl_gradient(gradient, teacher, 1.0f);
  EXPECT_EQ(gradient[2], 0.0f);
  EXPECT_TRUE(std::isfinite(gradient[0]));
}

TEST(RowProbabilities, SumToOne) {
  const auto logits = random_values(999, 15, 3.0f);
  std::vector<float> p(999);
  row_probabilities(p, logits, row_log_sum_exp(logits));
  EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1.0, 1e-6);
}

}  // namespace
}  // namespace ropd::kernels
