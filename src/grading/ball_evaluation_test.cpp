#include "grading/ball_evaluation.h"

#include <gtest/gtest.h>

#include "grading/latex_parser.h"

namespace ropd::grading {
namespace {

std::optional<double> value(std::string_view latex, const Bindings& bindings = {}) {
  const auto tree = parse_latex(latex, LatexDialect::strict);
  if (!tree) return std::nullopt;
  Budget budget;
  const auto ball = evaluate_ball(*tree, bindings, 128, budget);
  if (!ball) return std::nullopt;
  return arf_get_d(arb_midref(acb_realref(ball->raw())), ARF_RND_NEAR);
}

TEST(BallEvaluation, KnowsFunctions) {
  EXPECT_NEAR(*value("\\sin(\\pi/6)"), 0.5, 1e-15);
  EXPECT_NEAR(*value("\\ln(e^2)"), 2, 1e-15);
  EXPECT_NEAR(*value("\\log_2 8"), 3, 1e-15);
  EXPECT_NEAR(*value("e^{i\\pi}"), -1, 1e-15);
  EXPECT_NEAR(*value("\\sqrt{2}^{2}"), 2, 1e-15);
  EXPECT_NEAR(*value("|3+4i|"), 5, 1e-15);
  EXPECT_NEAR(*value("\\arctan 1"), 0.7853981633974483, 1e-15);
  EXPECT_NEAR(*value("7 \\mod 4"), 3, 1e-15);
}

TEST(BallEvaluation, BindsSymbolsAndVariablesOfSums) {
  EXPECT_NEAR(*value("x^2+1", {{"x", Rational(3)}}), 10, 1e-15);
  EXPECT_NEAR(*value("\\sum_{k=1}^{3} kx", {{"x", Rational(2)}}), 12, 1e-15);
  EXPECT_FALSE(value("x"));
}

TEST(BallEvaluation, GivesUnknownFunctionsAValueOfTheirArguments) {
  const Bindings point = {{"x", Rational(3)}};
  EXPECT_EQ(value("f(x)", point), value("f(3)"));
  EXPECT_NE(value("f(x)", point), value("g(x)", point));
  EXPECT_NE(value("f(x)", point), value("f(4)"));
}

TEST(BallEvaluation, RefusesWhatIsInfiniteOrTooLarge) {
  for (const char* latex :
       {"\\frac{1}{1-1}", "\\ln 0", "e^{10^{30}}", "5^{5^{5^{5^5}}}", "(10^{9})!", "0^{-1}"})
    EXPECT_FALSE(value(latex)) << latex;
}

TEST(BallEvaluation, StopsWhenTheBudgetIsSpent) {
  const auto tree = parse_latex("1+2+3", LatexDialect::strict);
  Budget budget{.steps = 2};
  EXPECT_FALSE(evaluate_ball(*tree, {}, 128, budget));
}

}  // namespace
}  // namespace ropd::grading
