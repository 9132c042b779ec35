#include <gtest/gtest.h>

#include "grading/grader.h"

namespace ropd::grading {
namespace {

TEST(ExtractBoxed, TakesTheLastBox) { EXPECT_EQ(extract_boxed("\\boxed{1} then \\boxed{42}"), "42"); }

TEST(ExtractBoxed, TakesTheInnerOfNestedBoxes) { EXPECT_EQ(extract_boxed("\\boxed{\\boxed{42}}"), "42"); }

TEST(ExtractBoxed, CountsBracesWithoutRegardToBackslashes) {
  EXPECT_EQ(extract_boxed("\\boxed{\\{1\\}} x"), "\\{1\\}");
  EXPECT_EQ(extract_boxed("\\boxed{a\\}b}"), "a\\");
}

TEST(ExtractBoxed, MayBeEmpty) { EXPECT_EQ(extract_boxed("\\boxed{}"), ""); }

TEST(ExtractBoxed, RefusesAnUnclosedLastBoxEvenBehindACompleteOne) {
  EXPECT_FALSE(extract_boxed("\\boxed{42} .. \\boxed{4"));
}

TEST(ExtractBoxed, RefusesOtherSpellings) {
  for (const char* text : {"42", "\\boxed 42", "\\boxed {42}", "\\fbox{42}", "\\boxed", ""})
    EXPECT_FALSE(extract_boxed(text)) << text;
}

}  // namespace
}  // namespace ropd::grading
