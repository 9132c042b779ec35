#include "curriculum/gradient_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/threads.h"

namespace ropd::curriculum {
namespace {

using testing::HasSubstr;
using Vector = std::vector<float>;

// Statistics with their own storage.
struct Fixture {
  explicit Fixture(size_t size) : a(size), b(size), statistics(a, b) {}
  Vector a, b;
  GradientStatistics statistics;
  Comparison iterate(const std::vector<Vector>& gradients, double last_scale = 1.0) {
    for (size_t i = 0; i < gradients.size(); ++i)
      statistics.observe(gradients[i], i + 1 == gradients.size() ? last_scale : 1.0);
    return statistics.compare();
  }
};

// The definition in double, two passes.
struct Naive {
  std::vector<double> mean;
  double within = 0;
  explicit Naive(const std::vector<std::vector<double>>& gradients) : mean(gradients[0].size()) {
    const double m = static_cast<double>(gradients.size());
    for (const auto& g : gradients)
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += g[i] / m;
    for (const auto& g : gradients)
      for (size_t i = 0; i < mean.size(); ++i) within += (g[i] - mean[i]) * (g[i] - mean[i]) / (m * (m - 1));
  }
};

TEST(GradientStatistics, KnownAnswerInTwoDimensions) {
  Fixture f(2);
  // mean (2, 0), deviations (-1,0) (1,0): v = 2 / (2*1) = 1
  const Comparison first = f.iterate({{1, 0}, {3, 0}});
  EXPECT_EQ(first.within, 1.0);
  EXPECT_FALSE(first.is_made());
  EXPECT_THAT(first.note, HasSubstr("no preceding"));
  // mean (2, 3), deviations (0,-2) (0,2): v = 8 / 2 = 4; D = 9, V = 5
  const Comparison second = f.iterate({{2, 1}, {2, 5}});
  EXPECT_EQ(second.within, 4.0);
  EXPECT_EQ(second.distance, 9.0);
  EXPECT_EQ(second.noise, 5.0);
  EXPECT_EQ(second.note, "");
}

TEST(GradientStatistics, DividesTheShortMinibatchFactorOut) {
  Fixture full(2), scaled(2);
  const Comparison expected = full.iterate({{1, 2}, {3, -2}, {4, 8}});
  const Comparison actual = scaled.iterate({{1, 2}, {3, -2}, {3, 6}}, 0.75);
  EXPECT_EQ(*expected.within, *actual.within);
  EXPECT_EQ(full.statistics.previous_mean()[1], scaled.statistics.previous_mean()[1]);
}

TEST(GradientStatistics, OneMinibatchGivesNoComparisonAndSaysSo) {
  Fixture f(1);
  (void)f.iterate({{1}, {2}});
  const Comparison single = f.iterate({{1}});
  EXPECT_FALSE(single.is_made());
  EXPECT_FALSE(single.within.has_value());
  EXPECT_THAT(single.note, HasSubstr("one minibatch"));
  const Comparison next = f.iterate({{1}, {2}});  // the preceding iteration has no variance
  EXPECT_FALSE(next.is_made());
  EXPECT_TRUE(next.within.has_value());
  EXPECT_TRUE(f.iterate({{1}, {2}}).is_made());
}

TEST(GradientStatistics, IterationsWithoutObservationsAreSteppedOver) {
  Fixture f(1);
  (void)f.iterate({{-1}, {1}});
  const Comparison nothing = f.iterate({});
  EXPECT_FALSE(nothing.is_made());
  EXPECT_THAT(nothing.note, HasSubstr("no gradient"));
  const Comparison comparison = f.iterate({{0}, {2}});
  EXPECT_EQ(comparison.distance, 1.0);
  EXPECT_EQ(comparison.noise, 2.0);
}

TEST(GradientStatistics, AgreesWithTheTwoPassDefinitionOverManyBlocks) {
  const size_t size = 150001;
  Fixture f(size);
  std::vector<Naive> naive;
  Comparison last;
  for (int iteration = 0; iteration < 2; ++iteration) {
    std::vector<std::vector<double>> plain;
    std::vector<Vector> gradients;
    for (int batch = 0; batch < 4; ++batch) {
      Vector g(size);
      for (size_t i = 0; i < size; ++i)
        g[i] = 1e-4f * std::sin(0.01f * static_cast<float>(i * static_cast<size_t>(batch + 1)) +
                                static_cast<float>(iteration));
      if (batch == 3)
        for (float& value : g) value *= 0.75f;
      gradients.push_back(g);
      std::vector<double> unscaled(g.begin(), g.end());
      if (batch == 3)
        for (double& value : unscaled) value /= 0.75;
      plain.push_back(unscaled);
    }
    naive.emplace_back(plain);
    last = f.iterate(gradients, 0.75);
  }
  double distance = 0;
  for (size_t i = 0; i < size; ++i) distance += std::pow(naive[1].mean[i] - naive[0].mean[i], 2);
  EXPECT_NEAR(*last.within / naive[1].within, 1, 1e-6);
  EXPECT_NEAR(*last.noise / (naive[0].within + naive[1].within), 1, 1e-6);
  EXPECT_NEAR(*last.distance / distance, 1, 1e-6);
}

std::vector<Vector> wavy_gradients(size_t size, float phase) {
  std::vector<Vector> gradients(3, Vector(size));
  for (size_t b = 0; b < 3; ++b)
    for (size_t i = 0; i < size; ++i)
      gradients[b][i] = std::sin(phase + 0.3f * static_cast<float>(i + 7 * b));
  return gradients;
}

TEST(GradientStatistics, HasTheSameBitsForAnyNumberOfThreads) {
  const size_t threads = num_threads();
  Comparison results[2];
  for (int run = 0; run < 2; ++run) {
    set_num_threads(run == 0 ? 1 : 3);
    Fixture f(200001);
    (void)f.iterate(wavy_gradients(200001, 0.1f));
    results[run] = f.iterate(wavy_gradients(200001, 0.2f));
  }
  set_num_threads(threads);
  EXPECT_EQ(*results[0].distance, *results[1].distance);
  EXPECT_EQ(*results[0].noise, *results[1].noise);
}

TEST(GradientStatistics, GoesOnExactlyFromASavedStateInsideAnIteration) {
  const size_t size = 1003;
  const auto first = wavy_gradients(size, 0.1f), second = wavy_gradients(size, 0.4f);
  Fixture whole(size);
  (void)whole.iterate(first);
  whole.statistics.observe(second[0], 1);
  whole.statistics.observe(second[1], 1);
  const StatisticsState saved = whole.statistics.state();
  Fixture restored(size);
  std::copy(whole.statistics.running_mean().begin(), whole.statistics.running_mean().end(),
            restored.statistics.running_mean().begin());
  std::copy(whole.statistics.previous_mean().begin(), whole.statistics.previous_mean().end(),
            restored.statistics.previous_mean().begin());
  restored.statistics.restore(saved);
  for (Fixture* f : {&whole, &restored}) f->statistics.observe(second[2], 0.5);
  const Comparison expected = whole.statistics.compare(), actual = restored.statistics.compare();
  EXPECT_EQ(*expected.distance, *actual.distance);
  EXPECT_EQ(*expected.noise, *actual.noise);
  EXPECT_EQ(whole.statistics.state(), restored.statistics.state());
}

// Two owners of a block each, who tell each other the sums of their blocks.
TEST(GradientStatistics, SlicesOfWholeBlocksSayWhatTheWholeVectorSays) {
  const size_t size = kSumBlock + 1000;
  Fixture whole(size);
  Vector a1(kSumBlock), b1(kSumBlock), a2(1000), b2(1000);
  std::vector<double> sums_of_second;
  GradientStatistics second(a2, b2, [&](const std::vector<double>& sums) {
    sums_of_second = sums;
    return 0.0;
  });
  GradientStatistics first(a1, b1, [&](std::vector<double> sums) {
    sums.insert(sums.end(), sums_of_second.begin(), sums_of_second.end());
    return sum_in_order(sums);
  });
  Comparison expected, found;
  for (size_t iteration = 0; iteration < 2; ++iteration) {
    for (size_t minibatch = 0; minibatch < 3; ++minibatch) {
      Vector gradient(size);
      for (size_t i = 0; i < size; ++i)
        gradient[i] = static_cast<float>((i * 7919 + minibatch * 104729 + iteration * 31) % 1009) / 97.0f;
      whole.statistics.observe(gradient, 1);
      second.observe(std::span(gradient).subspan(kSumBlock), 1);
      first.observe(std::span(gradient).first(kSumBlock), 1);
    }
    expected = whole.statistics.compare();
    (void)second.compare();
    found = first.compare();
  }
  EXPECT_EQ(found.within, expected.within);
  ASSERT_TRUE(expected.distance);
  EXPECT_EQ(found.distance, expected.distance);
}

}  // namespace
}  // namespace ropd::curriculum
