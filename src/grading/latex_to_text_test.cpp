#include "grading/latex_to_text.h"

#include <gtest/gtest.h>

namespace ropd::grading {
namespace {

TEST(LatexToText, WritesFractionsWithoutParentheses) {
  EXPECT_EQ(latex_to_text("\\frac{1+x}{2}"), "1+x/2");
  EXPECT_EQ(latex_to_text("\\frac12"), "1/2");
  EXPECT_EQ(latex_to_text("\\frac{\\frac{1}{2}}{3}"), "1/2/3");
}

TEST(LatexToText, DropsTheIndexOfRoots) { EXPECT_EQ(latex_to_text("\\sqrt[3]{8}"), "√(8)"); }

TEST(LatexToText, DropsUnknownMacrosAndKeepsTheirArguments) {
  EXPECT_EQ(latex_to_text("\\binom{5}{2}"), "52");
  EXPECT_EQ(latex_to_text("\\left(x\\right)"), "(x)");
  EXPECT_EQ(latex_to_text("\\mathbf{42}"), "42");
}

TEST(LatexToText, WritesSymbolsAsUnicode) {
  EXPECT_EQ(latex_to_text("\\pi\\le\\infty\\cup\\alpha"), "π≤∞∪α");
  EXPECT_EQ(latex_to_text("\\{1\\}"), "{1}");
  EXPECT_EQ(latex_to_text("1\\,000"), "1 000");
  EXPECT_EQ(latex_to_text("1\\!0"), "10");
  EXPECT_EQ(latex_to_text("x^{2}"), "x^2");
  EXPECT_EQ(latex_to_text("\\mathbb{R}"), "ℝ");
}

TEST(LatexToText, WritesMatricesInBrackets) {
  EXPECT_EQ(latex_to_text("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"), "[ 1 2; 3 4 ]");
}

TEST(LatexToText, EndsOnBrokenInput) {
  EXPECT_EQ(latex_to_text("}{"), "");
  EXPECT_TRUE(latex_to_text("\\begin{pmatrix"));
  EXPECT_TRUE(latex_to_text("\\frac"));
  EXPECT_FALSE(latex_to_text(std::string(1000, '{')));
}

}  // namespace
}  // namespace ropd::grading
