#include "grading/verify.h"

#include <gtest/gtest.h>

#include "grading/latex_parser.h"

namespace ropd::grading {
namespace {

bool reference(std::string_view given, std::string_view expected) {
  return verify(parse_latex(given, LatexDialect::reference), parse_latex(expected, LatexDialect::reference),
                VerifyRules::reference);
}
bool strict(std::string_view given, std::string_view expected) {
  return verify(parse_latex(given, LatexDialect::strict), parse_latex(expected, LatexDialect::strict),
                VerifyRules::strict);
}

TEST(Verify, UnwrapsAssignmentsAsTheExpectedFormAsks) {
  EXPECT_TRUE(reference("x=5", "5"));
  EXPECT_TRUE(reference("5", "x=5"));
  EXPECT_TRUE(reference("x+y=7", "7"));
  EXPECT_FALSE(reference("7", "2x+y=7"));
  EXPECT_FALSE(reference("y=5", "x=5"));
  EXPECT_TRUE(reference("a=b=5", "5"));
  EXPECT_TRUE(reference("2x", "f(x)=2x"));
}

TEST(Verify, ComparesEquationsAndInequalities) {
  EXPECT_TRUE(reference("x=2y", "2y=x"));
  EXPECT_TRUE(reference("2y=4x+2", "y=2x+1"));
  EXPECT_TRUE(reference("x>1", "1<x"));
  EXPECT_FALSE(reference("x\\ge 1", "1<x"));
  EXPECT_FALSE(reference("2x>2", "x>1"));  // the reference fails to compare solved inequalities
  EXPECT_TRUE(strict("2x>2", "x>1"));
  EXPECT_TRUE(strict("-x>-1", "x<1"));
}

TEST(Verify, ConvertsAnExpectedRelationToASetButNotAGivenOne) {
  EXPECT_TRUE(reference("(2,\\infty)", "x>2"));
  EXPECT_FALSE(reference("x>2", "(2,\\infty)"));
  EXPECT_TRUE(strict("x>2", "(2,\\infty)"));
}

TEST(Verify, ComparesSetsInAnyOrderAndTuplesInOrder) {
  EXPECT_TRUE(reference("1,2", "2,1"));
  EXPECT_TRUE(reference("(3,1,2)", "1,2,3"));
  EXPECT_FALSE(reference("(3,1,2)", "(1,2,3)"));
  EXPECT_TRUE(reference("1,2", "(1,2)"));
  EXPECT_FALSE(reference("2,1", "(1,2)"));
  EXPECT_FALSE(reference("(1,2)", "[1,2]"));
  EXPECT_FALSE(reference("(-2,-2)", "-2,-2"));
  EXPECT_TRUE(reference("x=1,x=-2", "1,-2"));
  EXPECT_FALSE(strict("(1,2,3)", "1,2,3"));
}

TEST(Verify, RoundsDecimalsToSixPlaces) {
  EXPECT_TRUE(reference("0.333333", "\\frac{1}{3}"));
  EXPECT_FALSE(reference("0.33333", "\\frac{1}{3}"));
  EXPECT_TRUE(reference("1.414214", "\\sqrt{2}"));
  EXPECT_FALSE(reference("2.0000004", "2"));
  EXPECT_TRUE(reference("2.0", "2"));
  EXPECT_TRUE(reference("0.0000001", "-0.0000001"));
  EXPECT_FALSE(strict("0.0000001", "-0.0000001"));
  EXPECT_TRUE(strict("1.41421", "\\sqrt{2}"));
  EXPECT_FALSE(strict("1.4142", "\\sqrt{2}"));
  EXPECT_FALSE(strict("1.41422", "\\sqrt{2}"));
}

TEST(Verify, ReadsWordsThatWereParsedAsProducts) {
  EXPECT_TRUE(reference("Evelyn", "\\text{Evelyn}"));
  EXPECT_FALSE(reference("\\text{Evelyn}+0", "\\text{Evelyn}"));
}

TEST(Verify, ComparesMatricesByElement) {
  EXPECT_TRUE(reference("\\begin{bmatrix}0.5\\\\2\\end{bmatrix}", "\\begin{pmatrix}1/2\\\\2\\end{pmatrix}"));
  EXPECT_FALSE(reference("\\begin{bmatrix}1&2\\end{bmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"));
}

TEST(Verify, PercentagesAreValues) {
  EXPECT_TRUE(reference("50\\%", "0.5"));
  EXPECT_TRUE(reference("50\\%", "\\frac{1}{2}"));
  EXPECT_FALSE(reference("50\\%", "50"));
}

}  // namespace
}  // namespace ropd::grading
