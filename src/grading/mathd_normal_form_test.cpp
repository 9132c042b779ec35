#include "grading/mathd_normal_form.h"

#include <gtest/gtest.h>

namespace ropd::grading {
namespace {

TEST(MathdNormalForm, DeletesSpacesAndShortAssignments) {
  EXPECT_EQ(mathd_normal_form("1 000"), "1000");
  EXPECT_EQ(mathd_normal_form("x = 42"), "42");
  EXPECT_EQ(mathd_normal_form("xyz=42"), "xyz=42");
}

TEST(MathdNormalForm, DeletesUnitWordsBetweenNonWordCharacters) {
  EXPECT_EQ(mathd_normal_form("5 m"), "5");
  EXPECT_EQ(mathd_normal_form("42 degrees"), "42");
  EXPECT_EQ(mathd_normal_form("x+a"), mathd_normal_form("x+t"));
  EXPECT_EQ(mathd_normal_form("m"), "m");      // never to nothing
  EXPECT_EQ(mathd_normal_form("cat"), "cat");  // whole words only
}

TEST(MathdNormalForm, NeedsTwoPassesForNeighbouringUnits) {
  // The blank behind one unit is used up by its match, so the first pass leaves every second one.
  EXPECT_EQ(mathd_normal_form("5 m m m m m"), "5");
  EXPECT_EQ(mathd_normal_form("5*m*m"), "5**");
}

TEST(MathdNormalForm, DeletesTextAtTheEnd) {
  EXPECT_EQ(mathd_normal_form("42 \\text{ or } 43 \\text{ cm}"), "42");
  EXPECT_EQ(mathd_normal_form("\\text{ 42 }"), "42");
  EXPECT_EQ(mathd_normal_form("12:30 \\text{ PM}"), "12:30");
}

TEST(MathdNormalForm, BracesShorthand) {
  EXPECT_EQ(mathd_normal_form("\\frac12"), "\\frac{1}{2}");
  EXPECT_EQ(mathd_normal_form("\\dfrac1{72}"), "\\frac{1}{72}");
  EXPECT_EQ(mathd_normal_form("\\sqrt3"), "\\sqrt{3}");
  EXPECT_EQ(mathd_normal_form("\\sqrt[3]{8}"), "\\sqrt{[}3]{8}");
  EXPECT_EQ(mathd_normal_form("3/4"), "\\frac{3}{4}");
  EXPECT_EQ(mathd_normal_form("03/4"), "03/4");
  EXPECT_EQ(mathd_normal_form("0.5"), "\\frac{1}{2}");
  EXPECT_EQ(mathd_normal_form(".5"), "\\frac{1}{2}");
}

TEST(MathdNormalForm, KeepsTheStrippedTextWhereTheReferenceStops) {
  EXPECT_EQ(mathd_normal_form(" a + \\sqrt "), "a + \\sqrt");
  EXPECT_EQ(mathd_normal_form("1 \\frac"), "1 \\frac");
}

TEST(MathdNormalForm, UnifiesMatricesAndRelations) {
  EXPECT_EQ(mathd_normal_form("\\begin{bmatrix}1\\\\2\\end{bmatrix}"), "\\begin{pmatrix}1\\2\\end{pmatrix}");
  EXPECT_EQ(mathd_normal_form("\\begin{array}{cc}1\\end{array}"), "\\begin{pmatrix}1\\end{pmatrix}");
  EXPECT_EQ(mathd_normal_form("x \\leq 1"), "x\\le1");
}

TEST(MathdNormalForm, DeletesDegreesDollarsAndPercent) {
  EXPECT_EQ(mathd_normal_form("42^{\\circ}"), "42");
  EXPECT_EQ(mathd_normal_form("\\$1.50"), "1.50");
  EXPECT_EQ(mathd_normal_form("50\\%"), "50");
}

}  // namespace
}  // namespace ropd::grading
