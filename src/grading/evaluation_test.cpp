#include "grading/evaluation.h"

#include <gtest/gtest.h>

#include "grading/latex_parser.h"

namespace ropd::grading {
namespace {

ExpressionRef parse(std::string_view latex) { return parse_latex(latex, LatexDialect::reference); }

bool equal(std::string_view left, std::string_view right, Tolerance tolerance = Tolerance::exact) {
  return are_equal_values(parse(left), parse(right), tolerance);
}

TEST(AreEqualValues, DecidesConstants) {
  EXPECT_TRUE(equal("\\frac{1}{\\sqrt{2}}", "\\frac{\\sqrt{2}}{2}"));
  EXPECT_TRUE(equal("\\sqrt{2}\\cdot\\sqrt{3}", "\\sqrt{6}"));
  EXPECT_TRUE(equal("\\sqrt{3+2\\sqrt{2}}", "1+\\sqrt{2}"));
  EXPECT_FALSE(equal("\\sqrt{2}", "1.41421356237309504880168872420969807857"));
  EXPECT_FALSE(equal("\\pi", "\\frac{355}{113}"));
}

TEST(AreEqualValues, SeesSmallDifferencesOfLargeValues) {
  EXPECT_FALSE(equal("3^{2025}+1", "3^{2025}"));
  EXPECT_FALSE(equal("(x+1)^{500}+1", "(x+1)^{500}"));
  EXPECT_TRUE(equal("(x+1)^{500}+0", "(x+1)^{500}"));
  EXPECT_FALSE(equal("2^{1000}\\pi+1", "2^{1000}\\pi"));
}

TEST(AreEqualValues, DecidesIdentities) {
  EXPECT_TRUE(equal("(x+1)^2", "x^2+2x+1"));
  EXPECT_TRUE(equal("\\sin^2 x+\\cos^2 x", "1"));
  EXPECT_TRUE(equal("\\frac{s+1}{s^2-1}", "\\frac{1}{s-1}"));
  EXPECT_TRUE(equal("e^{x+y}", "e^{x}e^{y}"));
  EXPECT_TRUE(equal("\\binom{2n}{n}+0", "\\binom{2n}{n}"));
  EXPECT_TRUE(equal("2f(x)", "f(x)+f(x)"));
  EXPECT_FALSE(equal("f(x)", "g(x)"));
  EXPECT_FALSE(equal("\\sqrt{x^2}", "x"));
  EXPECT_TRUE(equal("\\sqrt{x^2}", "|x|"));
  EXPECT_FALSE(equal("3n+1", "3k+1"));
}

TEST(AreEqualValues, ChopsBelowTheReferencesPrecision) {
  EXPECT_TRUE(equal("\\pi", "\\pi+10^{-20}", Tolerance::chop));
  EXPECT_FALSE(equal("\\pi", "\\pi+10^{-20}"));
  EXPECT_FALSE(equal("\\pi", "\\pi+10^{-12}", Tolerance::chop));
}

TEST(EvaluateExactly, IsBounded) {
  EXPECT_EQ(evaluate_exactly(*parse("\\frac{10!}{8!}"))->text(), "90");
  EXPECT_EQ(evaluate_exactly(*parse("16^{3/4}"))->text(), "8");
  EXPECT_FALSE(evaluate_exactly(*parse("2^{100000}")));
  EXPECT_FALSE(evaluate_exactly(*parse("(10^{9})!")));
  EXPECT_FALSE(evaluate_exactly(*parse("\\sqrt{2}")));
}

TEST(CompareReals, OrdersConstantsAndInfinities) {
  EXPECT_EQ(compare_reals(parse("\\sqrt{2}"), parse("1.5")), -1);
  EXPECT_EQ(compare_reals(parse("\\frac{4}{2}"), parse("2")), 0);
  EXPECT_EQ(compare_reals(parse("-\\infty"), parse("-10^{9}")), -1);
  EXPECT_EQ(compare_reals(parse("\\infty"), parse("\\infty")), 0);
  EXPECT_FALSE(compare_reals(parse("x"), parse("1")));
  EXPECT_FALSE(compare_reals(parse("\\sqrt{-1}"), parse("1")));
}

TEST(RoundedText, RoundsToDecimals) {
  EXPECT_EQ(rounded_text(*parse("\\frac{1}{3}"), 6), "333333");
  EXPECT_EQ(rounded_text(*parse("\\sqrt{2}"), 6), "1414214");
  EXPECT_EQ(rounded_text(*parse("-\\frac{2}{3}"), 2), "-67");
  EXPECT_FALSE(rounded_text(*parse("x"), 6));
}

TEST(ProportionalitySign, FindsConstantMultiples) {
  EXPECT_EQ(proportionality_sign(parse("2x-4y"), parse("x-2y")), 1);
  EXPECT_EQ(proportionality_sign(parse("2y-x"), parse("x-2y")), -1);
  EXPECT_FALSE(proportionality_sign(parse("x-y"), parse("x+y")));
}

}  // namespace
}  // namespace ropd::grading
