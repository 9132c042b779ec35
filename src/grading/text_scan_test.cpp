#include "grading/text_scan.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ropd::grading {
namespace {

TEST(ReplaceAll, GoesLeftToRightWithoutOverlap) {
  EXPECT_EQ(replace_all("aaa", "aa", "b"), "ba");
  EXPECT_EQ(replace_all("a,b,c", ",", ""), "abc");
}

TEST(Split, KeepsEmptyParts) { EXPECT_EQ(split("a==b", "="), (std::vector<std::string>{"a", "", "b"})); }

TEST(Strip, RemovesUnicodeSpaces) { EXPECT_EQ(strip("\u00A0 5\u00A0\n"), "5"); }

TEST(Characters, AreCodePointsAndBrokenBytesCountOnce) {
  EXPECT_EQ(count_characters("aé√𝟒"), 4u);
  EXPECT_EQ(count_characters("\xFF\xC3"), 2u);
  EXPECT_EQ(previous_character("a√", 4), 1u);
  EXPECT_EQ(code_point("√", 0), 0x221Au);
}

TEST(IsWord, FollowsUnicode) {
  EXPECT_TRUE(is_word('_'));
  EXPECT_TRUE(is_word(0x3C0));    // π
  EXPECT_TRUE(is_word(0xB2));     // superscript two
  EXPECT_FALSE(is_word(0xB0));    // degree sign
  EXPECT_FALSE(is_word(0x2264));  // less or equal
}

TEST(ToLower, KnowsLatinGreekAndCyrillic) { EXPECT_EQ(to_lower("AÉΩЖ5"), "aéωж5"); }

TEST(PythonFloat, ReadsWhatPythonReads) {
  EXPECT_EQ(python_float(" 42. "), 42.0);
  EXPECT_EQ(python_float("-.5e1"), -5.0);
  EXPECT_EQ(python_float("1_000"), 1000.0);
  EXPECT_TRUE(std::isnan(*python_float("nan")));
  EXPECT_TRUE(std::isinf(*python_float("-inf")));
}

TEST(PythonFloat, RefusesTheRest) {
  for (const char* text : {"", ".", "1e", "1__0", "0x10", "1 2", "e5", "--1"})
    EXPECT_FALSE(python_float(text)) << text;
}

TEST(PlainInteger, HasNoSignButMinusAndNoLeadingZeros) {
  for (const char* text : {"0", "-0", "7", "-120"}) EXPECT_TRUE(is_plain_integer(text)) << text;
  for (const char* text : {"", "-", "+1", "01", "-01", "1.0", "1 "})
    EXPECT_FALSE(is_plain_integer(text)) << text;
}

TEST(BraceTwo, PutsBracesAroundTheFirstTwoCharacters) {
  EXPECT_EQ(brace_two("12x"), "{1}{2}x");
  EXPECT_EQ(brace_two("1{23}x"), "{1}{23}x");
  EXPECT_EQ(brace_two("\u03c0\u00e9!"), "{\u03c0}{\u00e9}!");
}

TEST(WholeTextGroup, NeedsTheWholeText) {
  EXPECT_EQ(whole_text_group("\\text{(C)}"), "(C)");
  EXPECT_FALSE(whole_text_group("\\text{}"));
  EXPECT_FALSE(whole_text_group("x \\text{a}"));
}

}  // namespace
}  // namespace ropd::grading
