#include "grading/expression.h"

#include <gtest/gtest.h>

namespace ropd::grading {
namespace {

const ExpressionRef x = make_symbol("x"), y = make_symbol("y"), one = make_number(Rational(1));

TEST(Expression, SumsAndProductsAreFlat) {
  EXPECT_EQ(make_sum(make_sum(x, y), one)->children.size(), 3u);
  EXPECT_EQ(make_product(x, make_product(y, one))->children.size(), 3u);
}

TEST(Expression, QuotientsOfIntegersAreNumbers) {
  EXPECT_EQ(make_quotient(make_number(Rational(2)), make_number(Rational(4)))->value.text(), "1/2");
  EXPECT_EQ(make_quotient(x, make_number(Rational(2)))->kind, Kind::multiply);
  EXPECT_EQ(make_quotient(x, make_number(Rational(0))), nullptr);
}

TEST(Expression, KeysTellStructureAndKindOfNumbers) {
  EXPECT_EQ(structure_key(*make_sum(x, one)),
            structure_key(*make_sum(make_symbol("x"), make_number(Rational(1)))));
  EXPECT_NE(structure_key(*make_sum(x, one)), structure_key(*make_sum(one, x)));
  EXPECT_NE(structure_key(*one), structure_key(*make_number(Rational(1), /*is_decimal=*/true)));
}

TEST(Expression, SetsHoldEqualElementsOnce) {
  EXPECT_EQ(make_set({one, x, make_number(Rational(1))})->children.size(), 2u);
}

TEST(Expression, BoundVariablesAreNotFree) {
  const auto sum = make_node(Kind::series, {make_product(x, y), x, one, make_symbol("n")}, "sum");
  EXPECT_EQ(free_symbols(*sum), (std::set<std::string>{"n", "y"}));
}

}  // namespace
}  // namespace ropd::grading
