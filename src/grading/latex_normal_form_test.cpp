#include "grading/latex_normal_form.h"

#include <gtest/gtest.h>

namespace ropd::grading {
namespace {

TEST(LatexNormalForm, DropsSizesFontsAndDollars) {
  EXPECT_EQ(latex_normal_form("\\left(x\\right)"), "(x)");
  EXPECT_EQ(latex_normal_form("\\left (x"), "\\left (x");  // only directly before the delimiter
  EXPECT_EQ(latex_normal_form("\\dfrac{1}{2}"), "\\frac{1}{2}");
  EXPECT_EQ(latex_normal_form("\\$5 \\! 0"), "5 0");
}

TEST(LatexNormalForm, AndOrBecomeCommas) {
  EXPECT_EQ(latex_normal_form("1 or 2"), "1, 2");
  EXPECT_EQ(latex_normal_form("x=1\\text{ and }x=2"), "x=1,x=2");
  EXPECT_EQ(latex_normal_form("forty"), "forty");
  EXPECT_EQ(latex_normal_form("12{,}345"), "12,345");
}

TEST(LatexNormalForm, DropsUnitsAtTheEnd) {
  EXPECT_EQ(latex_normal_form("5 \\text{ cm}^2"), "5");
  EXPECT_EQ(latex_normal_form("5\\mathrm{cm}"), "5");
  EXPECT_EQ(latex_normal_form("5 sq m"), "5");
  EXPECT_EQ(latex_normal_form("5 m s"), "5");
  EXPECT_EQ(latex_normal_form("\\text{cm}"), "\\text{cm}");
  EXPECT_EQ(latex_normal_form("1.5 dollars"), "1.5 dollars");
  EXPECT_EQ(latex_normal_form("5 m", Units::keep), "5 m");
}

TEST(LatexNormalForm, BracesShorthand) {
  EXPECT_EQ(latex_normal_form("\\frac12"), "\\frac{1}{2}");
  EXPECT_EQ(latex_normal_form("\\frac{a}2"), "\\frac{a}{2}");
  EXPECT_EQ(latex_normal_form("\\frac2{a}"), "\\frac{2}{a}");
  EXPECT_EQ(latex_normal_form("\\sqrt3"), "\\sqrt{3}");
  EXPECT_EQ(latex_normal_form("x^(n+1)"), "x^{n+1}");
  EXPECT_EQ(latex_normal_form("3/4"), "\\frac{3}{4}");
  EXPECT_EQ(latex_normal_form(".5"), "\\frac{1}{2}");
  EXPECT_EQ(latex_normal_form("(n)_{k}"), "\\frac{(n)!}{((n)-(k))!}");
}

TEST(LatexNormalForm, WordsOfInfinityAndPercent) {
  EXPECT_EQ(latex_normal_form("(0, infinity)"), "(0, \\infty)");
  EXPECT_EQ(latex_normal_form("inf"), "\\infty");
  EXPECT_EQ(latex_normal_form("\\infty"), "\\infty");
  EXPECT_EQ(latex_normal_form("5 percent"), "5%");
}

TEST(LastEquationSide, NeedsMoreThanTwoPartsAndNoList) {
  EXPECT_EQ(last_equation_side("a=b=c"), "c");
  EXPECT_EQ(last_equation_side("a=b"), "a=b");
  EXPECT_EQ(last_equation_side("a=b=c,d"), "a=b=c,d");
  EXPECT_EQ(last_equation_side("a<=b=c"), "a<=b=c");
}

}  // namespace
}  // namespace ropd::grading
