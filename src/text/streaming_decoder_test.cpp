#include "text/streaming_decoder.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/test_tokenizer.h"
#include "text/unicode.h"

namespace ropd::text {
namespace {

Tokenizer byte_tokenizer() {
  return TestTokenizer{.tokens = TestTokenizer::with_all_bytes(),
                       .added = {{.content = "<end>", .is_special = true}}}
      .tokenizer();
}

TEST(StreamingDecoder, ShowsACharacterWhenItsLastByteIsThere) {
  const Tokenizer tokenizer = byte_tokenizer();
  StreamingDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(0xE4), "");
  EXPECT_EQ(decoder.push(0xB8), "");
  EXPECT_EQ(decoder.push(0xAD), "\u4e2d");
  EXPECT_EQ(decoder.push('a'), "a");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamingDecoder, AcutCharacterBecomesOneReplacement) {
  const Tokenizer tokenizer = byte_tokenizer();
  StreamingDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.push(0x9F), "");
  EXPECT_EQ(decoder.push('x'), "\uFFFDx");
  EXPECT_EQ(decoder.push(0xC3), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
}

TEST(StreamingDecoder, PartsTogetherAreDecodeForAnyBytes) {
  const Tokenizer tokenizer = byte_tokenizer();
  for (uint32_t round = 0; round < 500; ++round) {
    std::vector<Token> ids;
    StreamingDecoder decoder(tokenizer);
    std::string text;
    for (uint32_t i = 0; i < 40; ++i) {
      const auto bits = random_bits(1, Purpose::test, {.key = 7, .row = round, .column = i});
      // Mostly lead and continuation bytes, some ASCII, some special tokens.
      const Token id =
          bits[0] % 4 == 0 ? static_cast<Token>(bits[1] % 257) : static_cast<Token>(0x80 + bits[1] % 0x80);
      ids.push_back(id);
      const std::string part = decoder.push(id);
      EXPECT_TRUE(is_valid_utf8(part));
      text += part;
    }
    text += decoder.finish();
    EXPECT_EQ(text, tokenizer.decode(ids, true));
  }
}

TEST(StreamingDecoder, SpecialTokensAreShownOnRequest) {
  const Tokenizer tokenizer = byte_tokenizer();
  EXPECT_EQ(StreamingDecoder(tokenizer, true).push(256), "");
  EXPECT_EQ(StreamingDecoder(tokenizer, false).push(256), "<end>");
}

}  // namespace
}  // namespace ropd::text
