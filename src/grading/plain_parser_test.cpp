#include "grading/plain_parser.h"

#include <gtest/gtest.h>

#include "grading/evaluation.h"

namespace ropd::grading {
namespace {

std::string value(std::string_view text, PlainSyntax syntax = PlainSyntax::symbolic) {
  const auto tree = parse_plain(text, syntax);
  const auto exact = tree ? evaluate_exactly(*tree) : std::nullopt;
  return exact ? exact->text() : "-";
}

TEST(PlainParser, FollowsPythonsPrecedence) {
  EXPECT_EQ(value("1+2*3"), "7");
  EXPECT_EQ(value("-2^2"), "-4");
  EXPECT_EQ(value("2^3^2"), "512");
  EXPECT_EQ(value("2**-1"), "1/2");
  EXPECT_EQ(value("1/2/3"), "1/6");
  EXPECT_EQ(value("5!-3!"), "114");
}

TEST(PlainParser, ImpliesProducts) {
  EXPECT_EQ(value("2(3)(4)"), "24");
  EXPECT_EQ(value("1/2(4)"), "2");  // like 1/2*4
}

TEST(PlainParser, ReadsNumbers) {
  EXPECT_EQ(value("1.5e2"), "150");
  EXPECT_EQ(value(".25"), "1/4");
  EXPECT_EQ(value("007"), "-");
}

TEST(PlainParser, NumericDialectHasNoSymbolsAndNoImpliedProducts) {
  EXPECT_EQ(value("3+4", PlainSyntax::numeric), "7");
  EXPECT_EQ(value("2(3)", PlainSyntax::numeric), "-");
  EXPECT_EQ(value("x", PlainSyntax::numeric), "-");
}

TEST(PlainParser, RefusesOtherText) {
  for (const char* text : {"", "1,2", "a=b", "(1", "1)", "|x|", "1+", "1/0"})
    EXPECT_FALSE(parse_plain(text, PlainSyntax::symbolic)) << text;
}

TEST(PlainParser, BoundsNesting) {
  EXPECT_FALSE(parse_plain(std::string(3000, '(') + "1", PlainSyntax::symbolic));
  EXPECT_FALSE(parse_plain(std::string(3000, '-') + "1", PlainSyntax::symbolic));
}

}  // namespace
}  // namespace ropd::grading
