#include "grading/latex_lexer.h"

#include <gtest/gtest.h>

namespace ropd::grading {
namespace {

std::string kinds_and_texts(std::string_view latex) {
  const auto tokens = tokenize_latex(latex);
  if (!tokens) return "-";
  std::string result;
  for (const auto& token : *tokens) result += "[" + (token.text.empty() ? token.spelling : token.text) + "]";
  return result;
}

TEST(LatexLexer, FindsTheLongestKnownCommand) {
  EXPECT_EQ(kinds_and_texts("\\pix"), "[pi][x]");
  EXPECT_EQ(kinds_and_texts("\\sinh2\\sin2"), "[sinh][2][sin][2]");
  EXPECT_EQ(kinds_and_texts("\\infty\\in\\int"), "[\\infty][\\in][\\int]");
}

TEST(LatexLexer, ReadsNumbersPercentAndScientific) {
  EXPECT_EQ(kinds_and_texts("12.5\\%"), "[12.5]");
  EXPECT_EQ(tokenize_latex("8 %")->front().kind, TokenKind::percent);
  EXPECT_EQ(tokenize_latex("1.5E-3")->front().kind, TokenKind::scientific);
  EXPECT_EQ(kinds_and_texts("42."), "-");
}

TEST(LatexLexer, SkipsSpacing) { EXPECT_EQ(kinds_and_texts("1 \\, 2\\quad\\!3"), "[1][2][3]"); }

TEST(LatexLexer, ReadsDifferentials) {
  EXPECT_EQ(tokenize_latex("d x")->front().kind, TokenKind::differential);
  EXPECT_EQ(kinds_and_texts("d\\theta"), "[theta]");
  EXPECT_EQ(tokenize_latex("d+1")->front().kind, TokenKind::letter);
  EXPECT_EQ(tokenize_latex("diag")->front().kind, TokenKind::reserved);
}

TEST(LatexLexer, AccentsBecomeNames) {
  EXPECT_EQ(kinds_and_texts("\\text{(C) x}"), "[Cx]");
  EXPECT_EQ(kinds_and_texts("\\overline{AB}"), "[bar{AB}]");
  EXPECT_EQ(tokenize_latex("\\mathbb{R}")->front().kind, TokenKind::named_set);
}

TEST(LatexLexer, RefusesUnknownTextAndTooManyTokens) {
  EXPECT_EQ(kinds_and_texts("M_{\\odot}"), "-");
  EXPECT_EQ(kinds_and_texts("#"), "-");
  EXPECT_EQ(kinds_and_texts(std::string(3000, 'x')), "-");
}

}  // namespace
}  // namespace ropd::grading
