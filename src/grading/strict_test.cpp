#include "grading/strict.h"

#include <gtest/gtest.h>

namespace ropd::grading {
namespace {

TEST(SplitUnit, TakesTextBehindANumber) {
  EXPECT_EQ(split_unit("5 \\text{ cm}^2").value, "5");
  EXPECT_EQ(split_unit("5 \\text{ cm}^2").unit, "cm^2");
  EXPECT_EQ(split_unit("30^\\circ").unit, "degree");
  EXPECT_EQ(split_unit("\\text{Monday}").unit, "");
  EXPECT_EQ(split_unit("2 \\text{ or } 3").unit, "");
}

TEST(Strict, AcceptsEqualAnswersWrittenDifferently) {
  for (const auto& [given, expected] : {std::pair{"\\dfrac12", "\\frac{1}{2}"},
                                        {"0.5", "1/2"},
                                        {"x = 42", "42"},
                                        {"1,000", "1000"},
                                        {"2, 1", "1,2"},
                                        {"(x+1)^2", "x^2+2x+1"},
                                        {"42 \\text{ cm}", "42"},
                                        {"42^\\circ", "42"},
                                        {"3\\frac12", "\\frac72"},
                                        {"1.5e3", "1500"},
                                        {"52_{8}", "52_8"},
                                        {"e^{i\\pi}", "-1"},
                                        {"\\text{evelyn}", "\\text{Evelyn}"},
                                        {"\\text{(C)}", "C"},
                                        {"1 \\text{ or } 2", "1,2"},
                                        {"0<x<1", "(0,1)"},
                                        {"$5$", "5"},
                                        {"\\text{\\frac{1}{2}}", "0.5"}})
    EXPECT_TRUE(equivalent_strictly(given, expected)) << given << " and " << expected;
}

TEST(Strict, RefusesTheReferencesFalsePositives) {
  for (const auto& [given, expected] : {std::pair{"x+a", "x+t"},
                                        {"2t", "2s"},
                                        {"5 m", "5 s"},
                                        {"4 2", "42"},
                                        {"1 2 3", "123"},
                                        {"52", "52_8"},
                                        {"10101_2", "10101"},
                                        {"42 \\text{ or } 43", "42"},
                                        {"y=5", "x=5"},
                                        {"50\\%", "50"},
                                        {"a", "A"},
                                        {"12 \\text{ m}", "12 \\text{ s}"},
                                        {"x+y=7", "7"},
                                        {"\\frac{1+x}{2}", "1+\\frac{x}{2}"},
                                        {"-3.89e-10", "3.89e-10"},
                                        {"0.333333", "0.3333331"},
                                        {"5(3)", "8"},
                                        {"R r", "R^2"},
                                        {"\\text{a} + \\text{b}", "a} + \\text{b"},
                                        {"-x=5", "x=5"}})
    EXPECT_FALSE(equivalent_strictly(given, expected)) << given << " and " << expected;
}

TEST(Strict, StillRefusesWrongAnswers) {
  for (const auto& [given, expected] :
       {std::pair{"41", "42"}, {"\\text{Monday}", "\\text{Tuesday}"}, {"(1,2)", "[1,2]"}, {"", "1"}})
    EXPECT_FALSE(equivalent_strictly(given, expected)) << given;
}

}  // namespace
}  // namespace ropd::grading
