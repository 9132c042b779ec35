#include "rollout/repeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ropd::rollout {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Repeats, GuessesWhatFollowedBefore) {
  Repeats repeats;
  EXPECT_THAT(repeats.guess(std::vector<Token>{1, 2, 3, 4, 5, 9, 2, 3}, 4), IsEmpty()) << "two are too few";
  EXPECT_THAT(repeats.guess(std::vector<Token>{1, 2, 3, 4, 5, 9, 2, 3, 4}, 4), ElementsAre(5, 9, 2));
  EXPECT_THAT(repeats.guess(std::vector<Token>{1, 2, 3, 4, 5, 9, 2, 3, 4, 5}, 2), ElementsAre(9, 2));
  EXPECT_THAT(repeats.guess(std::vector<Token>{1, 2, 3, 4, 5, 9, 2, 3, 4, 5, 7}, 4), IsEmpty())
      << "it went on otherwise";
}

TEST(Repeats, GuessesMoreTheLongerItHasRepeated) {
  std::vector<Token> tokens;
  for (Token t = 0; t < 40; ++t) tokens.push_back(t);
  Repeats repeats;
  for (Token t = 0; t < 20; ++t) {
    tokens.push_back(t);
    EXPECT_EQ(repeats.guess(tokens, 8).size(), t < 2 ? 0u : std::min<size_t>(8, static_cast<size_t>(t) + 1))
        << t;
  }
}

TEST(Repeats, GoesRoundInShortCircles) {
  Repeats repeats;
  EXPECT_THAT(repeats.guess(std::vector<Token>{8, 1, 2, 1, 2, 1, 2, 1, 2}, 5), ElementsAre(1, 2, 1, 2, 1));
  Repeats one;
  EXPECT_THAT(one.guess(std::vector<Token>(9, 7), 5), ElementsAre(7, 7, 7, 7, 7));
}

TEST(Repeats, TakesTheLastPlaceOfSeveral) {
  Repeats repeats;
  EXPECT_THAT(repeats.guess(std::vector<Token>{1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}, 1), ElementsAre(5));
}

// Whatever comes in one call or one by one.
TEST(Repeats, DoesNotDependOnHowOftenItIsAsked) {
  std::vector<Token> tokens;
  Repeats often;
  for (uint32_t i = 0, state = 1; i < 3000; ++i) {
    state = state * 1664525u + 1013904223u;
    tokens.push_back(static_cast<Token>((state >> 16) % 3));
    const auto guesses = often.guess(tokens, 6);
    if (i % 97 == 0) {
      Repeats once;
      EXPECT_EQ(once.guess(tokens, 6), guesses) << i;
    }
  }
}

}  // namespace
}  // namespace ropd::rollout
