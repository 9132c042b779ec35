#include "grading/real_set.h"

#include <gtest/gtest.h>

#include "grading/latex_parser.h"

namespace ropd::grading {
namespace {

ExpressionRef parse(std::string_view latex) { return parse_latex(latex, LatexDialect::reference); }

bool equal(std::string_view left, std::string_view right) {
  const auto a = to_real_set(*parse(left)), b = to_real_set(*parse(right));
  return a && b && are_equal_sets(*a, *b);
}

TEST(RealSet, OrdersAndJoinsUnions) {
  EXPECT_TRUE(equal("(2,3]\\cup[0,1)", "[0,1)\\cup(2,3]"));
  EXPECT_TRUE(equal("[0,2)\\cup[1,3]", "[0,3]"));
  EXPECT_TRUE(equal("[0,1)\\cup[1,2]", "[0,2]"));
  EXPECT_FALSE(equal("[0,1)\\cup(1,2]", "[0,2]"));
  EXPECT_TRUE(equal("(0,1)\\cup\\{0,1\\}", "[0,1]"));
}

TEST(RealSet, IntersectsAndSubtracts) {
  EXPECT_TRUE(equal("[0,5]\\cap(3,9)", "(3,5]"));
  EXPECT_TRUE(equal("\\mathbb{R}\\setminus\\{1\\}", "(-\\infty,1)\\cup(1,\\infty)"));
  EXPECT_TRUE(equal("[0,1]\\cap[2,3]", "\\emptyset"));
}

TEST(RealSet, NeedsRealConstants) {
  EXPECT_FALSE(to_real_set(*parse("\\mathbb{Z}")));
  EXPECT_FALSE(to_real_set(*parse("\\{x,1\\}")));
}

TEST(SolutionSet, SolvesRelationsOfOneSymbol) {
  const auto matches = [](std::string_view relation, std::string_view set) {
    const auto a = to_solution_set(*parse(relation)), b = to_real_set(*parse(set));
    return a && b && are_equal_sets(*a, *b);
  };
  EXPECT_TRUE(matches("0<x<1", "(0,1)"));
  EXPECT_TRUE(matches("x\\ge 2", "[2,\\infty)"));
  EXPECT_TRUE(matches("2\\ge x", "(-\\infty,2]"));
  EXPECT_TRUE(matches("x\\ne 0", "(-\\infty,0)\\cup(0,\\infty)"));
  EXPECT_FALSE(to_solution_set(*parse("x<y<1")));
}

}  // namespace
}  // namespace ropd::grading
