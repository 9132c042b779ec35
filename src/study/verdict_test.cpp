#include "study/verdict.h"

#include <gtest/gtest.h>

namespace ropd::study {
namespace {

TEST(Judge, ComparesSignAndInterval) {
  EXPECT_EQ(judge(stats::Interval{2, 1, 3}, 4.4), Verdict::same_and_significant);
  EXPECT_EQ(judge(stats::Interval{-2, -3, -1}, -4.4), Verdict::same_and_significant);
  EXPECT_EQ(judge(stats::Interval{2, -1, 5}, 4.4), Verdict::same_sign);
  EXPECT_EQ(judge(stats::Interval{-2, -5, 1}, 4.4), Verdict::opposite);
  EXPECT_EQ(judge(stats::Interval{-2, -3, -1}, 4.4), Verdict::opposite_and_significant);
  EXPECT_EQ(judge(std::nullopt, 4.4), Verdict::not_measured);
}

// R-OPD whose trigger fired where the fixed switch is: one state, one evaluation.
TEST(Judge, ExactlyZeroIsNotTheOpposite) {
  EXPECT_EQ(judge(stats::Interval{0, 0, 0}, 4.4), Verdict::no_difference);
  EXPECT_EQ(judge(stats::Interval{0, 0, 0}, -4.4), Verdict::no_difference);
}

TEST(Judge, AnIntervalThatTouchesZeroHoldsIt) {
  EXPECT_EQ(judge(stats::Interval{1, 0, 2}, 1), Verdict::same_sign);
}

TEST(Verdicts, HaveAWordEach) {
  EXPECT_EQ(verdict_text(Verdict::same_and_significant), "same sign and significant");
  EXPECT_EQ(verdict_text(Verdict::same_sign), "same sign, not significant");
  EXPECT_EQ(verdict_text(Verdict::no_difference), "no difference");
  EXPECT_EQ(verdict_text(Verdict::opposite), "opposite, not significant");
  EXPECT_EQ(verdict_text(Verdict::opposite_and_significant), "opposite and significant");
  EXPECT_EQ(verdict_text(Verdict::not_measured), "not measured");
}

}  // namespace
}  // namespace ropd::study
