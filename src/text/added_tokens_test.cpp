#include "text/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ropd::text {
namespace {

using testing::ElementsAre;

// "begin-end:content" of every match.
std::vector<std::string> matches(const std::vector<AddedToken>& tokens, std::string_view text,
                                 bool parse_special = true) {
  std::vector<std::string> contents;
  std::vector<const AddedToken*> pointers;
  for (const auto& token : tokens) contents.push_back(token.content), pointers.push_back(&token);
  const AddedTokenMatcher matcher(contents, pointers);
  std::vector<AddedTokenMatch> found;
  matcher.find_all(found, text, parse_special);
  std::vector<std::string> result;
  for (const auto& match : found)
    result.push_back(std::to_string(match.begin) + "-" + std::to_string(match.end) + ":" +
                     match.token->content);
  return result;
}

TEST(AddedTokens, TheLongestAtTheLeftmostPlaceWins) {
  const std::vector<AddedToken> tokens = {
      {.content = "<a"}, {.content = "<a>"}, {.content = "a>b"}, {.content = "<a>bcd"}};
  EXPECT_THAT(matches(tokens, "x<a>bc<a<a>bcd"), ElementsAre("1-4:<a>", "6-8:<a", "8-14:<a>bcd"));
}

TEST(AddedTokens, ASingleWordNeedsNoWordBesideIt) {
  const std::vector<AddedToken> tokens = {{.content = "ab", .is_single_word = true}};
  EXPECT_THAT(matches(tokens,
                      "ab xab abx ab_ (ab) \u00E9"
                      "ab"),
              ElementsAre("0-2:ab", "16-18:ab"));
}

TEST(AddedTokens, StrippingTakesTheWhiteSpaceBeside) {
  const std::vector<AddedToken> left = {{.content = "#", .strips_left = true}};
  EXPECT_THAT(matches(left, "a \u3000\n# # b"), ElementsAre("1-7:#", "7-9:#"));
  const std::vector<AddedToken> right = {{.content = "#", .strips_right = true}};
  EXPECT_THAT(matches(right, "a # \n #b"), ElementsAre("2-6:#", "6-7:#"));
}

TEST(AddedTokens, WhatWasStrippedLeavesNothingOfATokenThatStripsLeft) {
  const std::vector<AddedToken> tokens = {{.content = "#", .strips_right = true},
                                          {.content = "\n", .strips_left = true}};
  EXPECT_THAT(matches(tokens, "#\na\n"), ElementsAre("0-2:#", "3-4:\n"));
}

TEST(AddedTokens, SpecialOnesArePassedOverOnRequest) {
  const std::vector<AddedToken> tokens = {{.content = "<s>", .is_special = true}, {.content = "<t>"}};
  EXPECT_THAT(matches(tokens, "<s><t>", false), ElementsAre("3-6:<t>"));
}

TEST(AddedTokens, AHundredThousandTokensAndALongRunOfSpacesAreFast) {
  std::vector<AddedToken> tokens;
  for (int i = 0; i < 100'000; ++i)
    tokens.push_back({.content = " <tok" + std::to_string(i) + ">", .strips_left = true});
  tokens.push_back({.content = " ", .strips_left = true, .strips_right = true});
  EXPECT_EQ(matches(tokens, std::string(200'000, ' ') + "<tok99999>").size(), 2u);
}

}  // namespace
}  // namespace ropd::text
