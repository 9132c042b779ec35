#include "text/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ropd::text {
namespace {

using testing::ElementsAre;

std::vector<std::string> pieces(std::string_view text, SplitRule rule = SplitRule::qwen) {
  const Pretokenizer pretokenizer(rule);
  std::vector<std::string> result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = pretokenizer.piece_end(text, begin);
    result.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

TEST(Pretokenizer, AWordTakesOneCharacterBeforeIt) {
  EXPECT_THAT(pieces("Hello world"), ElementsAre("Hello", " world"));
  EXPECT_THAT(pieces("$x \tb"), ElementsAre("$x", " ", "\tb"));
}

TEST(Pretokenizer, ContractionsAreOwnPiecesInAnyCase) {
  EXPECT_THAT(pieces("don't we'LL I'm x'y"), ElementsAre("don", "'t", " we", "'LL", " I", "'m", " x", "'y"));
  EXPECT_THAT(pieces("a'\u017Fb"), ElementsAre("a", "'\u017F", "b"));  // the long s folds to s
}

TEST(Pretokenizer, DigitsStandAlone) {
  EXPECT_THAT(pieces("a12 3"), ElementsAre("a", "1", "2", " ", "3"));
  EXPECT_THAT(pieces("1234567", SplitRule::llama3), ElementsAre("123", "456", "7"));
}

TEST(Pretokenizer, PunctuationTakesASpaceBeforeAndNewlinesBehind) {
  EXPECT_THAT(pieces("a ==\r\n\nb"), ElementsAre("a", " ==\r\n\n", "b"));
  EXPECT_THAT(pieces("\t--"), ElementsAre("\t", "--"));  // only a space, no other white space
}

TEST(Pretokenizer, WhiteSpaceLeavesItsLastSpaceToTheWord) {
  EXPECT_THAT(pieces("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(pieces("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(pieces("a   1"), ElementsAre("a", "  ", " ", "1"));
}

TEST(Pretokenizer, WhiteSpaceEndsAtItsLastNewline) {
  EXPECT_THAT(pieces("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(pieces("\n\n\na"), ElementsAre("\n\n\n", "a"));
}

TEST(Pretokenizer, MarksAreNeitherLettersNorSpaces) {
  EXPECT_THAT(pieces("q\u0301x"), ElementsAre("q", "\u0301x"));
}

TEST(Pretokenizer, WithoutARuleTheTextIsOnePiece) {
  EXPECT_THAT(pieces("a 1\n", SplitRule::whole_text), ElementsAre("a 1\n"));
}

}  // namespace
}  // namespace ropd::text
