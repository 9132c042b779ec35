#include "grading/latex_parser.h"

#include <gtest/gtest.h>

#include "grading/evaluation.h"

namespace ropd::grading {
namespace {

std::string value(std::string_view latex, LatexDialect dialect = LatexDialect::reference) {
  const auto tree = parse_latex(latex, dialect);
  const auto exact = tree ? evaluate_exactly(*tree) : std::nullopt;
  return exact ? exact->text() : "-";
}

Kind kind(std::string_view latex) { return parse_latex(latex, LatexDialect::reference)->kind; }

bool same(std::string_view left, std::string_view right) {
  const auto a = parse_latex(left, LatexDialect::reference), b = parse_latex(right, LatexDialect::reference);
  return a && b && are_equal_values(a, b, Tolerance::exact);
}

TEST(LatexParser, ReadsArithmetic) {
  EXPECT_EQ(value("2^{5}+10"), "42");
  EXPECT_EQ(value("2^10"), "1024");
  EXPECT_EQ(value("-2^2"), "-4");
  EXPECT_EQ(value("--\\frac{1}{2}"), "1/2");
  EXPECT_EQ(value("\\frac{84}{2} \\cdot 3 / 7"), "18");
  EXPECT_EQ(value("\\sqrt[3]{8}+\\sqrt{16}"), "6");
  EXPECT_EQ(value("\\binom{5}{2}+{5 \\choose 2}"), "20");
  EXPECT_EQ(value("5!-\\lfloor 3.7\\rfloor+\\lceil 0.5\\rceil+|{-3}|"), "121");
  EXPECT_EQ(value("\\gcd(12, 18)+\\max(1,2)"), "8");
  EXPECT_EQ(value("30^\\circ"), "30");
  EXPECT_EQ(value("8\\%"), "2/25");
}

TEST(LatexParser, ReadsMixedNumbers) {
  EXPECT_EQ(value("3\\frac{1}{2}"), "7/2");
  EXPECT_EQ(value("-3\\frac{1}{2}"), "-7/2");
  EXPECT_EQ(value("5(3)"), "8");  // as the reference does
  EXPECT_EQ(value("5(3)", LatexDialect::strict), "15");
  EXPECT_EQ(value("4 2", LatexDialect::strict), "-");
}

TEST(LatexParser, FunctionsWithoutParenthesesTakeTheFollowingProduct) {
  EXPECT_TRUE(same("\\sin 2x", "\\sin(2x)"));
  EXPECT_TRUE(same("\\sin x \\cos x", "\\cos(x)\\sin(x)"));
  EXPECT_TRUE(same("\\sin(3t)/5", "\\frac{1}{5}\\sin(3t)"));
  EXPECT_TRUE(same("\\sin^2 x", "(\\sin x)^2"));
  EXPECT_TRUE(same("\\log_2 8", "3"));
  EXPECT_TRUE(same("\\log 100", "2"));
  EXPECT_TRUE(same("\\tan^{-1} 1", "\\frac{\\pi}{4}"));
}

TEST(LatexParser, NamesBeforeParenthesesAreFunctionsOfAtomsAndLists) {
  EXPECT_EQ(kind("f(x)"), Kind::call);
  EXPECT_EQ(kind("f(x,2y)"), Kind::call);
  EXPECT_EQ(kind("k(n+1)"), Kind::multiply);
}

TEST(LatexParser, SymbolsKeepSubscripts) {
  EXPECT_TRUE(same("x_{1}", "x_1"));
  EXPECT_FALSE(same("x_1", "x_2"));
  EXPECT_TRUE(same("R", "r"));
  EXPECT_EQ(parse_latex("E_{1}", LatexDialect::reference), nullptr);  // E takes no subscript in the grammar
}

TEST(LatexParser, CommaListsAreSetsAndBracketsIntervalsOrTuples) {
  EXPECT_EQ(kind("1,2"), Kind::finite_set);
  EXPECT_EQ(kind("(1,2)"), Kind::interval);
  EXPECT_EQ(kind("(2,1)"), Kind::tuple);
  EXPECT_EQ(kind("(1,2,3)"), Kind::tuple);
  EXPECT_EQ(kind("\\{1,2\\}"), Kind::finite_set);
  EXPECT_EQ(kind("3\\pm 2"), Kind::finite_set);
  EXPECT_EQ(kind("(3\\pm 2)"), Kind::tuple);
  EXPECT_EQ(kind("(0,1)\\cup[2,3)"), Kind::set_union);
  EXPECT_EQ(kind("((0,1)\\cup[2,3))"), Kind::set_union);
  EXPECT_EQ(kind("\\emptyset"), Kind::named_set);
  EXPECT_EQ(kind("(42)"), Kind::number);
}

TEST(LatexParser, ReadsRelations) {
  EXPECT_EQ(kind("x=5"), Kind::relation);
  EXPECT_EQ(kind("0<x\\le 1"), Kind::chain);
  EXPECT_EQ(kind("x\\in(0,1)"), Kind::relation);
  EXPECT_EQ(kind("x=1,y=2"), Kind::finite_set);
  EXPECT_EQ(kind("x=1,2"), Kind::relation);
  EXPECT_EQ(value("x \\approx 3"), "3");
}

TEST(LatexParser, ReadsMatrices) {
  const auto matrix = parse_latex("\\begin{pmatrix}1&2\\\\3&4\\\\\\end{pmatrix}", LatexDialect::reference);
  ASSERT_TRUE(matrix);
  EXPECT_EQ(matrix->num_columns, 2u);
  EXPECT_EQ(matrix->children.size(), 4u);
  EXPECT_FALSE(parse_latex("\\begin{pmatrix}1&2\\\\3\\end{pmatrix}", LatexDialect::reference));
  EXPECT_FALSE(parse_latex("\\begin{pmatrix}1\\end{pmatrix}+0", LatexDialect::reference));
}

TEST(LatexParser, DerivativesOfOtherVariablesAreZero) { EXPECT_EQ(value("\\frac{d v}{d t}"), "0"); }

TEST(LatexParser, SumsAndProductsAreEvaluated) {
  EXPECT_TRUE(same("\\sum_{i=1}^{4} i^2", "30"));
  EXPECT_TRUE(same("\\prod_{k=1}^{4} k", "24"));
}

TEST(LatexParser, BasesAreDroppedOrRead) {
  EXPECT_EQ(value("10101_2"), "10101");
  EXPECT_EQ(value("10101_2", LatexDialect::strict), "21");
  EXPECT_EQ(value("19_8", LatexDialect::strict), "-");
}

TEST(LatexParser, ThousandsAreOneNumberOnlyWithoutBlanks) {
  EXPECT_EQ(parse_latex_or_number("12,345", LatexDialect::reference)->kind, Kind::number);
  EXPECT_EQ(parse_latex_or_number("12, 345", LatexDialect::reference)->kind, Kind::finite_set);
  EXPECT_EQ(parse_latex_or_number("1,2,3", LatexDialect::reference)->kind, Kind::finite_set);
}

TEST(LatexParser, RefusesWhatTheGrammarDoesNotHold) {
  for (const char* latex :
       {"", "=", "x+", "(1", "\\frac{1}", "\\frac{1,2}{1}", "\\frac{x=5}{1}", "x^-1", "1/0", "\\left. x"})
    EXPECT_FALSE(parse_latex(latex, LatexDialect::reference)) << latex;
}

TEST(LatexParser, BoundsNesting) {
  for (const std::string open : {"(", "{", "|", "\\sqrt{", "\\frac{", "\\sin", "x^", "1_", "-"}) {
    std::string latex;
    while (latex.size() < 1500) latex += open;
    EXPECT_FALSE(parse_latex(latex, LatexDialect::reference)) << open;
  }
}

}  // namespace
}  // namespace ropd::grading
