#include "grading/repetition.h"

#include <gtest/gtest.h>

#include <string>

namespace ropd::grading {
namespace {

TEST(IsRepetitive, SeesOneTextOverAndOver) {
  std::string text;
  while (text.size() < 300) text += "1+2+";
  EXPECT_TRUE(is_repetitive(text));
  EXPECT_TRUE(is_repetitive(std::string(200, 'x')));
}

TEST(IsRepetitive, LeavesOrdinaryTextAlone) {
  EXPECT_FALSE(is_repetitive(
      "\\omega_{n}^{2} e^{-\\zeta \\omega_{n} t} \\cos \\left(\\omega_{n} \\sqrt{1-\\zeta^{2}} t\\right)"));
  EXPECT_FALSE(is_repetitive(""));
  EXPECT_FALSE(is_repetitive("a"));
}

// "aab": suffixes aab, ab, b; common beginnings 1 and 0; 1 * 2 / (3 * 4) = 0.17. "aaa": 1 and 2; 3 * 2 / 12 =
// 0.5.
TEST(IsRepetitive, IsTheFormula) {
  EXPECT_FALSE(is_repetitive("aab"));
  EXPECT_TRUE(is_repetitive("aaa"));
}

TEST(IsRepetitive, CountsCharactersNotBytes) { EXPECT_EQ(is_repetitive("√√b"), is_repetitive("aab")); }

}  // namespace
}  // namespace ropd::grading
