#include "text/vocabulary_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/test_data.h"
#include "support/test_tokenizer.h"

namespace ropd::text {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Student: letters, "ab" as one token. Teacher: letters, "bc" as one token; other ids, other EOS.
Tokenizer student_tokenizer() {
  return TestTokenizer{.tokens = {"a", "b", "c", "d", "\xC3", "\xA9", "ab"},
                       .merges = {{"a", "b"}},
                       .added = {{.id = 7, .content = "<end>", .is_special = true},
                                 {.id = 8, .content = "<think>"},
                                 {.id = 9, .content = "<box>"}}}
      .tokenizer();
}
Tokenizer teacher_tokenizer() {
  return TestTokenizer{.tokens = {"d", "c", "b", "a", "bc", "<", "b", "o", "x", ">", "\xC3", "\xA9",
                                  "\xC3\xA9", "\xEF", "\xBF", "\xBD"},
                       .merges = {{"b", "c"}, {"\xC3", "\xA9"}},
                       .added = {{.content = "</s>", .is_special = true}, {.content = "<think>"}}}
      .tokenizer();
}
VocabularyMap letter_map() {
  const Tokenizer student = student_tokenizer(), teacher = teacher_tokenizer();
  return VocabularyMap(student, teacher, student.token_id("<end>"), teacher.token_id("</s>"));
}

TEST(VocabularyMap, MapsTokensOfTheSameBytesAndEosByMeaning) {
  const VocabularyMap map = letter_map();
  const Tokenizer teacher = teacher_tokenizer();
  EXPECT_EQ(map.teacher_id(0), teacher.token_id("a"));
  EXPECT_EQ(map.teacher_id(7), teacher.token_id("</s>"));
  EXPECT_EQ(map.teacher_id(8), teacher.token_id("<think>"));
  EXPECT_FALSE(map.teacher_id(6));    // "ab" is no token of the teacher
  EXPECT_FALSE(map.teacher_id(100));  // behind the vocabulary
  EXPECT_THAT(map.unmappable(), ElementsAre(6, 9));
}

TEST(VocabularyMap, IdenticalTokenizersGiveTheIdentity) {
  const VocabularyMap map(student_tokenizer(), student_tokenizer(), std::nullopt, std::nullopt);
  EXPECT_TRUE(map.is_identity());
  EXPECT_EQ(map.teacher_id(100), 100);  // padding rows too
  const std::vector<Token> response = {0, 6, 2, 7};
  const AlignedResponse aligned = map.align(response);
  EXPECT_EQ(aligned.teacher_ids, response);
  EXPECT_THAT(aligned.teacher_position, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(aligned.num_masked, 0u);
}

TEST(VocabularyMap, AlignsPositionsWhoseByteBoundariesCoincide) {
  const VocabularyMap map = letter_map();
  const Tokenizer teacher = teacher_tokenizer();
  // student: ab | c | d | <end>     teacher: a | bc | d | </s>
  const AlignedResponse aligned = map.align(std::vector<Token>{6, 2, 3, 7});
  EXPECT_THAT(aligned.teacher_ids, ElementsAre(*teacher.token_id("a"), *teacher.token_id("bc"),
                                               *teacher.token_id("d"), *teacher.token_id("</s>")));
  EXPECT_THAT(aligned.teacher_position, ElementsAre(0, -1, 2, 3));
  EXPECT_EQ(aligned.num_masked, 1u);
}

TEST(VocabularyMap, TakesAddedTokensOverAndReadsUnknownOnesAsText) {
  const VocabularyMap map = letter_map();
  const Tokenizer teacher = teacher_tokenizer();
  // student: d | <think> | a | <box> | b
  const AlignedResponse aligned = map.align(std::vector<Token>{3, 8, 0, 9, 1});
  EXPECT_EQ(aligned.teacher_ids[1], teacher.token_id("<think>"));
  EXPECT_EQ(teacher.decode(aligned.teacher_ids, false), "d<think>a<box>b");
  EXPECT_THAT(aligned.teacher_position, ElementsAre(0, 1, 2, 3, 8));
}

TEST(VocabularyMap, WhatTheTeacherCannotSpellEndsItsReading) {
  const Tokenizer student = student_tokenizer();
  const Tokenizer teacher =
      TestTokenizer{
          .tokens = {"a", "b", "c"}, .merges = {}, .added = {{.content = "</s>", .is_special = true}}}
          .tokenizer();
  const VocabularyMap map(student, teacher, student.token_id("<end>"), teacher.token_id("</s>"));
  // student: a | <box> | b | <end>; the teacher has no letter of <box>
  const AlignedResponse aligned = map.align(std::vector<Token>{0, 9, 1, 7});
  EXPECT_THAT(aligned.teacher_ids, ElementsAre(*teacher.token_id("a")));
  EXPECT_THAT(aligned.teacher_position, ElementsAre(0, -1, -1, -1));
  EXPECT_EQ(aligned.num_masked, 3u);
  EXPECT_THAT(map.align(std::vector<Token>{3, 0}).teacher_position, ElementsAre(-1, -1));  // d | a
}

TEST(VocabularyMap, MasksInsideACutCharacterOnly) {
  const VocabularyMap map = letter_map();
  // a | C3 | A9 | b: the teacher has the character as one token; then a response cut after C3.
  EXPECT_THAT(map.align(std::vector<Token>{0, 4, 5, 1}).teacher_position, ElementsAre(0, 1, -1, 2));
  EXPECT_THAT(map.align(std::vector<Token>{0, 4}).teacher_position, ElementsAre(0, 1));
}

TEST(VocabularyMap, WithoutAKnownEosIsRefused) {
  const Tokenizer student = student_tokenizer(), teacher = teacher_tokenizer();
  EXPECT_THROW(VocabularyMap(student, teacher, 7, std::nullopt), Error);
}

TEST(VocabularyMap, TooDifferentTokenizersAreNotUsable) {
  const Tokenizer teacher =
      TestTokenizer{.tokens = {"x", "y"}, .added = {{.content = "</s>", .is_special = true}}}.tokenizer();
  const VocabularyMap map(student_tokenizer(), teacher, 7, teacher.token_id("</s>"));
  EXPECT_THROW(map.check_usable(), Error);
  EXPECT_NO_THROW(letter_map().check_usable());
}

TEST(VocabularyMap, Qwen3ToDeepSeekLeavesEightControlTokens) {
  ROPD_NEEDS_DATA();
  const auto data = test::data_directory() / "tokenizers";
  const VocabularyMap map = VocabularyMap::load(data / "qwen3", data / "deepseek_r1_distill_qwen");
  EXPECT_FALSE(map.is_identity());
  EXPECT_EQ(map.teacher_id(151645), 151643);
  // <|endoftext|> <|im_start|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> and
  // <tool_response> both ways
  EXPECT_THAT(map.unmappable(), ElementsAre(151643, 151644, 151646, 151647, 151648, 151649, 151665, 151666));
  EXPECT_EQ(map.teacher_id(151667), 151648);  // <think>
  EXPECT_THAT(map.describe(), testing::HasSubstr("<|im_start|>"));
  // The vocabulary below the control tokens is the same: every position of ordinary text aligns.
  const Tokenizer& qwen3 = data_tokenizer("qwen3");
  auto response = qwen3.encode("<think>\nLet x = 12.\n</think>\n\nThe answer is \\boxed{42}. \u4e2d\u6587");
  response.push_back(151645);
  const AlignedResponse aligned = map.align(response);
  EXPECT_EQ(aligned.num_masked, 0u);
  ASSERT_EQ(aligned.teacher_ids.size(), response.size());
  for (size_t i = 0; i < response.size(); ++i) EXPECT_EQ(aligned.teacher_ids[i], map.teacher_id(response[i]));
}

TEST(VocabularyMap, Qwen3AndQwen25AreNotTheSameAndDifferOnlyInAddedTokens) {
  ROPD_NEEDS_DATA();
  const VocabularyMap map(data_tokenizer("qwen2_5"), data_tokenizer("qwen3"), 151645, 151645);
  EXPECT_FALSE(map.is_identity());
  EXPECT_THAT(map.unmappable(), IsEmpty());
  EXPECT_EQ(map.teacher_id(151645), 151645);
}

}  // namespace
}  // namespace ropd::text
