#include "grading/prm_normal_form.h"

#include <gtest/gtest.h>

namespace ropd::grading {
namespace {

TEST(PrmNormalForm, RoundsNumbersNearIntegers) {
  EXPECT_EQ(prm_normal_form("42.00000001"), "42");
  EXPECT_EQ(prm_normal_form("4.2e1"), "42");
  EXPECT_EQ(prm_normal_form("42.000001"), "42.000001");
  EXPECT_EQ(prm_normal_form("1,000"), "1000");
  EXPECT_EQ(prm_normal_form("10,00"), "10,00");
  EXPECT_EQ(prm_normal_form("4e22"), "40000000000000000000000");
}

TEST(PrmNormalForm, DeletesUnitsAsSubstrings) {
  EXPECT_EQ(prm_normal_form("Monday"), "mon");
  EXPECT_EQ(prm_normal_form("5 cm^2"), "5");
  EXPECT_EQ(prm_normal_form("30^\\circ"), "30");
}

TEST(PrmNormalForm, JoinsMixedNumbers) {
  EXPECT_EQ(prm_normal_form("3\\frac12"), "3+1/2");
  EXPECT_EQ(prm_normal_form("1\\,000"), "1+000");
  EXPECT_EQ(prm_normal_form("- 7 3/4"), "-7+3/4");
}

TEST(PrmNormalForm, DropsPercentDollarsBracesAndCase) {
  EXPECT_EQ(prm_normal_form("50\\%"), "50");
  EXPECT_EQ(prm_normal_form("$X_{1}$"), "x_1");
  EXPECT_EQ(prm_normal_form("5 million"), "5*10^6");
}

TEST(SplitTuple, NeedsOuterBracketsAndNoneInside) {
  EXPECT_EQ(split_tuple("(1,2]"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(split_tuple("(1,000,2)"), (std::vector<std::string>{"1000", "2"}));
  EXPECT_EQ(split_tuple("(1),(2)"), (std::vector<std::string>{"(1),(2)"}));
}

TEST(EqualByPrm, ComparesFractionsOnlyLiterally) {
  EXPECT_FALSE(equal_by_prm("2/4", "1/2"));
  EXPECT_TRUE(equal_by_prm("\\frac{1}{2}", "1/2"));
}

TEST(EqualByPrm, NeverMixesIntegersWithTheRest) { EXPECT_FALSE(equal_by_prm("6*7", "42")); }

TEST(EqualByPrm, EvaluatesTheDifference) {
  EXPECT_TRUE(equal_by_prm("2(n-1)", "2n-2"));
  EXPECT_TRUE(equal_by_prm("sqrt(8)", "2\\sqrt{2}"));
  EXPECT_FALSE(equal_by_prm("2m-2", "2n-2"));
  EXPECT_TRUE(equal_by_prm("(1/2, 0.50)", "(1/2, .5)"));
}

TEST(EqualByPrm, RefusesManyLettersAndLargePowers) {
  EXPECT_FALSE(equal_by_prm("a+b+c", "c+b+a"));
  EXPECT_FALSE(equal_by_prm("x^10+x", "x+x^10"));
}

}  // namespace
}  // namespace ropd::grading
