#include "grading/number.h"

#include <gtest/gtest.h>

namespace ropd::grading {
namespace {

TEST(Rational, ReadsDecimalsExactly) {
  EXPECT_EQ(Rational::from_decimal("1.50")->text(), "3/2");
  EXPECT_EQ(Rational::from_decimal(".125")->text(), "1/8");
  EXPECT_FALSE(Rational::from_decimal("1.2.3"));
  EXPECT_FALSE(Rational::from_decimal("."));
  EXPECT_FALSE(Rational::from_decimal(std::string(5000, '9')));
}

TEST(Rational, ComputesExactly) {
  const Rational third(1, 3), half(1, 2);
  EXPECT_EQ((third + half).text(), "5/6");
  EXPECT_EQ((third - half).text(), "-1/6");
  EXPECT_EQ((third * half / half).text(), "1/3");
  EXPECT_TRUE(third < half);
}

TEST(Rational, PowersAreBounded) {
  EXPECT_EQ(Rational::power(Rational(2, 3), -2, 1000)->text(), "9/4");
  EXPECT_FALSE(Rational::power(Rational(2), 100000, 20000));
  EXPECT_FALSE(Rational::power(Rational(0), -1, 1000));
  EXPECT_EQ(Rational::power(Rational(-1), 1000000000000001, 10)->text(), "-1");
}

TEST(Rational, RootsAreExactOrAbsent) {
  EXPECT_EQ(Rational::root(Rational(8, 27), 3)->text(), "2/3");
  EXPECT_FALSE(Rational::root(Rational(2), 2));
  EXPECT_FALSE(Rational::root(Rational(-8), 3));
}

TEST(Rational, KnowsIntegerFunctions) {
  EXPECT_EQ(Rational::floor(Rational(-7, 2)).text(), "-4");
  EXPECT_EQ(Rational::factorial(20).text(), "2432902008176640000");
  EXPECT_EQ(Rational::binomial(10, 3).text(), "120");
  EXPECT_EQ(Rational::gcd(Rational(12), Rational(18)).text(), "6");
}

TEST(Ball, KnowsItsBounds) {
  const Ball third(Rational(1, 3), 64);
  EXPECT_TRUE(third.is_finite());
  EXPECT_FALSE(third.contains_zero());
  EXPECT_TRUE(third.is_below_power_of_two(-1));
  EXPECT_FALSE(third.is_below_power_of_two(-2));
}

}  // namespace
}  // namespace ropd::grading
