#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "base/rng.h"
#include "support/test_data.h"
#include "support/test_tokenizer.h"
#include "text/unicode.h"

namespace ropd::text {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void expect_golden(const std::string& tokenizer_name, const std::string& golden_name) {
  const auto data = test::data_directory();
  const Tokenizer& tokenizer = data_tokenizer(tokenizer_name);
  std::ifstream lines(data / "golden" / golden_name);
  size_t num_rows = 0;
  for (std::string line; std::getline(lines, line); ++num_rows) {
    const Json row = parse_json(line, golden_name);
    const auto text = row.at("text").get<std::string>();
    const auto expected = row.at("ids").get<std::vector<Token>>();
    ASSERT_EQ(tokenizer.encode(text), expected) << text;
    const OffsetEncoding offsets = tokenizer.encode_with_offsets(text);
    ASSERT_EQ(offsets.ids, expected) << text;
    ASSERT_EQ(tokenizer.decode(expected, /*skip_special=*/false), offsets.text);
    for (size_t i = 0; i < offsets.ids.size(); ++i)
      ASSERT_EQ(offsets.text.substr(offsets.begin[i], offsets.end[i] - offsets.begin[i]),
                tokenizer.token_bytes(offsets.ids[i]));
    const size_t half = expected.size() / 2;
    ASSERT_EQ(tokenizer.encode_first(text, half),
              std::vector<Token>(expected.begin(), expected.begin() + half));
  }
  EXPECT_EQ(num_rows, 1067u);
}

TEST(Tokenizer, GivesTheGoldenIdsOfQwen3) {
  ROPD_NEEDS_DATA();
  expect_golden("qwen3", "tokenizer_qwen3.jsonl");
}

TEST(Tokenizer, GivesTheGoldenIdsOfQwen25) {
  ROPD_NEEDS_DATA();
  expect_golden("qwen2_5", "tokenizer_qwen2_5.jsonl");
}

// All bytes and some merges, so that every text can be encoded.
TestTokenizer byte_tokenizer() {
  return {.tokens = TestTokenizer::with_all_bytes({"he", "ll", "hell", " w", "\xC3\xA9", "  "}),
          .merges = {{"h", "e"}, {"l", "l"}, {"he", "ll"}, {" ", "w"}, {"\xC3", "\xA9"}, {" ", " "}},
          .added = {{.content = "<end>", .is_special = true},
                    {.content = "<think>"},
                    {.content = "e\u0301x", .is_normalized = true},
                    {.content = "<left>", .strips_left = true}}};
}

std::string random_unicode(uint32_t round) {
  std::string text;
  const uint32_t length = random_bits(5, Purpose::test, {.key = 21, .row = round})[0] % 60;
  for (uint32_t i = 0; i < length; ++i) {
    const auto bits = random_bits(5, Purpose::test, {.key = 22, .row = round, .column = i});
    constexpr char32_t kLimits[] = {0x80, 0x250, 0x3000, 0xFFFF, 0x32400, 0x10FFFF};
    char32_t point = bits[0] % (kLimits[bits[1] % 6] + 1);
    if (bits[2] % 5 == 0) point = 0x300 + bits[3] % 0x70;  // marks, to make normalisation work
    if (bits[2] % 5 == 1) point = " \n\t'1"[bits[3] % 5];
    if (point >= 0xD800 && point <= 0xDFFF) point = 'x';
    append_utf8(text, point);
  }
  return text;
}

TEST(Tokenizer, DecodeOfEncodeIsNfcOnRandomUnicode) {
  const Tokenizer tokenizer = byte_tokenizer().tokenizer();
  for (uint32_t round = 0; round < 5000; ++round) {
    const std::string text = random_unicode(round);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text), false), normalize_nfc(text)) << text;
    ASSERT_EQ(tokenizer.encode_with_offsets(text).text, normalize_nfc(text));
  }
}

TEST(Tokenizer, DecodeOfEncodeIsNfcOnRandomUnicodeForQwen3) {
  ROPD_NEEDS_DATA();
  const Tokenizer& tokenizer = data_tokenizer("qwen3");
  for (uint32_t round = 0; round < 5000; ++round) {
    const std::string text = random_unicode(round);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text), false), normalize_nfc(text)) << text;
  }
}

TEST(Tokenizer, BrokenUtf8IsReadAsReplacementCharacters) {
  const Tokenizer tokenizer = byte_tokenizer().tokenizer();
  EXPECT_EQ(tokenizer.encode("a\xFFz"), tokenizer.encode("a\uFFFDz"));
}

TEST(Tokenizer, DecodeReplacesWhatIsNotUtf8) {
  const Tokenizer tokenizer = byte_tokenizer().tokenizer();
  EXPECT_EQ(tokenizer.decode(std::vector<Token>{'a', 0xC3, 'b'}), "a\uFFFDb");
  EXPECT_EQ(tokenizer.decode(std::vector<Token>{'a', -1, 5000, 'b'}), "ab");  // outside the vocabulary
}

TEST(Tokenizer, SpecialTokensAreRecognisedOrNotAndLeftOutOnRequest) {
  const Tokenizer tokenizer = byte_tokenizer().tokenizer();
  const Token end = *tokenizer.token_id("<end>");
  EXPECT_THAT(tokenizer.encode("a<end>"), ElementsAre('a', end));
  EXPECT_EQ(tokenizer.encode("a<end>", false).size(), 6u);
  EXPECT_THAT(tokenizer.encode("<think>", false), ElementsAre(*tokenizer.token_id("<think>")));
  EXPECT_EQ(tokenizer.decode(std::vector<Token>{'a', end}, true), "a");
  EXPECT_EQ(tokenizer.decode(std::vector<Token>{'a', end}, false), "a<end>");
  EXPECT_TRUE(tokenizer.is_special(end));
  EXPECT_FALSE(tokenizer.is_special('a'));
}

TEST(Tokenizer, NormalisedAddedTokensMatchInTheNormalisedText) {
  const Tokenizer tokenizer = byte_tokenizer().tokenizer();
  const Token token = *tokenizer.token_id("e\u0301x");
  EXPECT_THAT(tokenizer.encode("\u00E9x"), ElementsAre(token));
  EXPECT_THAT(tokenizer.encode("e\u0301x"), ElementsAre(token));
}

TEST(Tokenizer, AStrippingTokenTakesItsSpacesAlong) {
  const Tokenizer tokenizer = byte_tokenizer().tokenizer();
  EXPECT_THAT(tokenizer.encode("a  <left> b"), ElementsAre('a', *tokenizer.token_id("<left>"), ' ', 'b'));
}

TEST(Tokenizer, TheFirstTokensAreThoseOfTheWholeText) {
  const Tokenizer tokenizer = byte_tokenizer().tokenizer();
  const std::string text = "hello <end> wide<think> world";
  const auto all = tokenizer.encode(text);
  for (size_t count = 0; count <= all.size() + 1; ++count)
    EXPECT_EQ(tokenizer.encode_first(text, count),
              std::vector<Token>(all.begin(), all.begin() + std::min(count, all.size())));
}

TEST(Tokenizer, TheFingerprintIsOfTheContent) {
  const std::string base = byte_tokenizer().tokenizer().fingerprint();
  TestTokenizer other = byte_tokenizer();
  other.merges_are_strings = true;
  EXPECT_EQ(other.tokenizer().fingerprint(), base);
  other.added[0].is_special = false;
  EXPECT_NE(other.tokenizer().fingerprint(), base);
  other = byte_tokenizer();
  std::swap(other.merges[0], other.merges[1]);
  EXPECT_NE(other.tokenizer().fingerprint(), base);
}

TEST(Tokenizer, ATinyAlphabetRefusesOtherTextByNamingTheByte) {
  const Tokenizer digits = TestTokenizer{.tokens = {"0", "1", "+", "="}}.tokenizer();
  EXPECT_THAT(digits.encode("1+0=1"), ElementsAre(1, 2, 0, 3, 1));
  try {
    (void)digits.encode("1+x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("0x78"));
  }
}

TEST(Tokenizer, LoadingNamesTheFile) {
  test::TemporaryDirectory directory;
  EXPECT_THROW((void)Tokenizer::load(directory.path()), Error);
  write_file_atomically(directory / "tokenizer.json", "\xEF\xBB\xBF" + byte_tokenizer().json().dump());
  EXPECT_EQ(Tokenizer::load(directory.path()).fingerprint(),
            Tokenizer::load(directory / "tokenizer.json").fingerprint());
  write_file_atomically(directory / "tokenizer.json", "{\"model\": ");
  try {
    (void)Tokenizer::load(directory.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("tokenizer.json"));
  }
}

}  // namespace
}  // namespace ropd::text
