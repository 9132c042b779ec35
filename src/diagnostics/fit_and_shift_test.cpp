#include "diagnostics/fit_and_shift.h"

#include <gtest/gtest.h>

namespace ropd::diagnostics {
namespace {

// Sources stand in another order than students: student 0 owns source 1, student 1 source 0.
TEST(FitAndShift, IsTheHandComputedDecomposition) {
  const std::vector<std::vector<double>> kl = {{9, 4}, {2.5, 1}};  // E_aa = 4, E_ba = 1, E_bb = 2.5
  const std::vector<std::optional<size_t>> own_source = {1, 0};
  const auto pairs = fit_and_shift(kl, own_source);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].from, 0u);
  EXPECT_EQ(pairs[0].to, 1u);
  EXPECT_EQ(pairs[0].change, 1.5);
  EXPECT_EQ(pairs[0].fit, 3);
  EXPECT_EQ(pairs[0].shift, -1.5);
}

TEST(FitAndShift, WithoutLearningAllIsShift) {
  const std::vector<std::vector<double>> kl = {{4, 1}, {4, 1}};  // one model, two sets of states
  const std::vector<std::optional<size_t>> own_source = {0, 1};
  const auto pairs = fit_and_shift(kl, own_source);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].fit, 0);
  EXPECT_EQ(pairs[0].shift, 3);
}

TEST(FitAndShift, PairsOnlyStudentsWithStatesOfTheirOwn) {
  const std::vector<std::vector<double>> kl = {{8, 0}, {4, 0}, {3, 2}};
  const std::vector<std::optional<size_t>> own_source = {0, std::nullopt, 1};
  const auto pairs = fit_and_shift(kl, own_source);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].from, 0u);
  EXPECT_EQ(pairs[0].to, 2u);
  EXPECT_EQ(pairs[0].fit, 5);
  EXPECT_EQ(pairs[0].shift, 1);
}

}  // namespace
}  // namespace ropd::diagnostics
