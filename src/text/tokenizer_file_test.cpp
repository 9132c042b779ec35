#include "text/tokenizer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/test_tokenizer.h"

namespace ropd::text {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TestTokenizer small() {
  return {.tokens = {"a", "b", " ", "ab"},
          .merges = {{"a", "b"}},
          .added = {{.content = "<s>", .is_special = true}, {.content = "<t>", .strips_left = true}}};
}

std::string error_of(const Json& json) {
  try {
    parse_tokenizer_file(json.dump(), "tokenizer.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TokenizerFile, ReadsVocabularyMergesAndAddedTokens) {
  const TokenizerFile file = parse_tokenizer_file(small().json().dump(), "tokenizer.json");
  EXPECT_THAT(file.tokens, ElementsAre("a", "b", " ", "ab"));
  EXPECT_THAT(file.merges, ElementsAre(Merge{0, 1, 3}));
  ASSERT_EQ(file.added.size(), 2u);
  EXPECT_EQ(file.added[0].id, 4);
  EXPECT_TRUE(file.added[0].is_special);
  EXPECT_TRUE(file.added[1].strips_left);
  EXPECT_TRUE(file.normalizes_nfc);
  EXPECT_EQ(file.split, SplitRule::qwen);
}

TEST(TokenizerFile, BothSpellingsOfMergesGiveTheSame) {
  TestTokenizer strings = small();
  strings.merges_are_strings = true;
  EXPECT_EQ(parse_tokenizer_file(strings.json().dump(), "a").merges,
            parse_tokenizer_file(small().json().dump(), "b").merges);
  EXPECT_EQ(strings.tokenizer().fingerprint(), small().tokenizer().fingerprint());
}

TEST(TokenizerFile, TheByteAlphabetIsInvertible) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  EXPECT_EQ(byte_level_bytes(byte_level_spelling(bytes)), bytes);
  EXPECT_EQ(byte_level_spelling(" \n"), "\u0120\u010A");
  EXPECT_EQ(byte_level_bytes("\u4e2d"), std::nullopt);
}

TEST(TokenizerFile, AMergeOfAnAbsentTokenIsNamed) {
  Json json = small().json();
  json["model"]["merges"].push_back({"a", "x"});
  EXPECT_THAT(error_of(json), AllOf(HasSubstr("merge 1"), HasSubstr("\"x\"")));
  json["model"]["merges"].back() = {"b", "a"};  // the result "ba" is absent
  EXPECT_THAT(error_of(json), HasSubstr("\"ba\""));
}

TEST(TokenizerFile, MalformedMergesAreRefused) {
  for (const Json& merge :
       {Json("ab"), Json("a b c"), Json(" b"), Json::array({"a"}), Json(5), Json::array({"a", 1})}) {
    Json json = small().json();
    json["model"]["merges"].push_back(merge);
    EXPECT_THAT(error_of(json), HasSubstr("merge 1")) << merge;
  }
}

TEST(TokenizerFile, GapsAndRepeatsOfIdsAreRefused) {
  Json json = small().json();
  json["model"]["vocab"]["b"] = 7;
  EXPECT_THAT(error_of(json), HasSubstr("has id 7"));
  json["model"]["vocab"]["b"] = 0;
  EXPECT_THAT(error_of(json), HasSubstr("twice"));
  json["model"]["vocab"]["b"] = -1;
  EXPECT_NE(error_of(json), "");
  json = small().json();
  json["added_tokens"][1]["id"] = 9;
  EXPECT_THAT(error_of(json), HasSubstr("expected 5"));
  json["added_tokens"][1]["id"] = 0;
  EXPECT_NE(error_of(json), "");
  json["added_tokens"][1]["id"] = 4'000'000'000;
  EXPECT_NE(error_of(json), "");
}

TEST(TokenizerFile, AnAddedTokenMayNameOneOfTheVocabulary) {
  Json json = small().json();
  json["added_tokens"].push_back({{"id", 3}, {"content", "ab"}, {"special", false}});
  EXPECT_EQ(error_of(json), "");
  json["added_tokens"].back()["id"] = 2;
  EXPECT_THAT(error_of(json), HasSubstr("id 3 in model.vocab"));
}

TEST(TokenizerFile, WhatWouldChangeIdsIsRefusedByName) {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = small().json();
    json[Json::json_pointer(pointer)] = value;
    return error_of(json);
  };
  EXPECT_THAT(with("/normalizer/type", "NFKC"), HasSubstr("NFKC"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/type", "Digits"), HasSubstr("Digits"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+"), HasSubstr("\\w+"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/behavior", "Removed"), HasSubstr("Removed"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/1/use_regex", true), HasSubstr("use_regex"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/1/add_prefix_space", true), HasSubstr("add_prefix_space"));
  EXPECT_THAT(with("/pre_tokenizer", Json{{"type", "Metaspace"}}), HasSubstr("Metaspace"));
  EXPECT_THAT(with("/model/type", "Unigram"), HasSubstr("Unigram"));
  EXPECT_THAT(with("/model/dropout", 0.1), HasSubstr("dropout"));
  EXPECT_THAT(with("/model/byte_fallback", true), HasSubstr("byte_fallback"));
  EXPECT_THAT(with("/model/end_of_word_suffix", "</w>"), HasSubstr("end_of_word_suffix"));
  EXPECT_THAT(with("/model/unk_token", "<unk>"), HasSubstr("<unk>"));
  EXPECT_THAT(with("/decoder/type", "Metaspace"), HasSubstr("Metaspace"));
  EXPECT_THAT(with("/post_processor/type", "Bert"), HasSubstr("Bert"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/invert", true), HasSubstr("invert=true"));
  EXPECT_EQ(with("/model/ignore_merges", true), "");
  EXPECT_EQ(with("/normalizer", nullptr), "");
}

// As tools wrote it that came from tiktoken.
TEST(TokenizerFile, KeepingTheMatchesIsIsolatingThem) {
  Json json = small().json();
  Json& split = json["pre_tokenizer"]["pretokenizers"][0];
  split["behavior"] = "Removed";
  split["invert"] = true;
  EXPECT_EQ(parse_tokenizer_file(json.dump(), "tokenizer.json").split, SplitRule::qwen);
}

TEST(TokenizerFile, TwentyThousandAddedTokensAreRead) {
  TestTokenizer many = small();
  for (int i = 0; i < 20'000; ++i) many.added.push_back({.content = "<extra_" + std::to_string(i) + ">"});
  const Tokenizer tokenizer = many.tokenizer();
  EXPECT_EQ(tokenizer.vocab_size(), 20'006u);
  EXPECT_THAT(tokenizer.encode("a<extra_19999>b"), ElementsAre(0, 20'005, 1));
}

TEST(TokenizerFile, NotATokenizerIsRefused) {
  EXPECT_NE(error_of(Json::array()), "");
  EXPECT_NE(error_of(Json::object()), "");
  EXPECT_NE(error_of({{"model", 5}}), "");
}

}  // namespace
}  // namespace ropd::text
