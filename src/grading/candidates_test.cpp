#include "grading/candidates.h"

#include <gtest/gtest.h>

#include "grading/evaluation.h"

namespace ropd::grading {
namespace {

std::string value(std::string_view answer) {
  const auto tree = parse_answer(answer);
  if (!tree) return "-";
  const auto exact = evaluate_exactly(*tree);
  return exact ? exact->text() : "expression";
}

TEST(ParseAnswer, TakesTextWithoutDollarsAsOneFormula) { EXPECT_EQ(value("\\frac{1}{2}"), "1/2"); }

TEST(ParseAnswer, JoinsNeighbouringFormulasToASet) {
  EXPECT_EQ(parse_answer("$69$,$84$")->children.size(), 2u);
  EXPECT_EQ(parse_answer("$1$, $2$ and $3$")->children.size(), 3u);
}

TEST(ParseAnswer, TakesTheLastFormulaThatParses) {
  EXPECT_EQ(value("$x$ is $5$ here"), "5");
  EXPECT_EQ(value("$4$ is $\\odot$ here"), "4");
}

TEST(ParseAnswer, FallsBackToPlainNumbersAndSums) {
  EXPECT_EQ(value("\\approx 42"), "42");
  EXPECT_EQ(value("\\frac{x=5}{1}"), "5");
  EXPECT_EQ(value("-1./3"), "-1");  // the decimal point without digits ends the number
  EXPECT_EQ(value("\\odot =3+4"), "7");
  EXPECT_EQ(value("\\odot 1,234.5"), "2469/2");
  EXPECT_EQ(value("\\odot = .5 percent"), "1/200");
}

TEST(ParseAnswer, ReadsTheLastSideOfAChainThatDoesNotParse) { EXPECT_EQ(value("\\odot=x=6"), "6"); }

TEST(ParseAnswer, GivesNothingWhereNothingParses) {
  for (const char* text : {"", "\\odot", "$$", "$ $", "$\nx$"}) EXPECT_EQ(value(text), "-") << text;
}

}  // namespace
}  // namespace ropd::grading
