#include "text/unicode.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include "base/rng.h"

namespace ropd::text {
namespace {

// NFC by utf8proc's own whole-text function: the naive twin.
std::string nfc_twin(const std::string& text) {
  utf8proc_uint8_t* result = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &result,
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string copy(reinterpret_cast<const char*>(result), static_cast<size_t>(size));
  std::free(result);
  return copy;
}

std::string random_text(uint32_t round) {
  // Where normalisation happens: Latin with marks, Greek, Hangul and its letters, singletons, compatibility
  // ideographs.
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x41, 0x7A},     {0xC0, 0x17F},    {0x300, 0x36F},   {0x300, 0x330},
      {0x370, 0x3FF},   {0x900, 0x9FD},   {0x1100, 0x11FF}, {0xAC00, 0xD7A3},
      {0x1E00, 0x1FFF}, {0x2100, 0x214F}, {0xF900, 0xFAFF}, {0x1D150, 0x1D1FF}};
  std::string text;
  for (uint32_t i = 0; i < 30; ++i) {
    const auto bits = random_bits(3, Purpose::test, {.key = 1, .row = round, .column = i});
    const auto [first, last] = kRanges[bits[0] % std::size(kRanges)];
    append_utf8(text, first + bits[1] % (last - first + 1));
  }
  return text;
}

TEST(Nfc, EqualsTheTwinOnRandomText) {
  for (uint32_t round = 0; round < 5000; ++round) {
    const std::string text = random_text(round);
    const std::string expected = nfc_twin(text);
    ASSERT_EQ(normalize_nfc(text), expected) << text;
    if (is_nfc(text)) {
      ASSERT_EQ(text, expected);
    }
    const auto offsets = offsets_after_nfc(text);
    ASSERT_EQ(offsets.back(), expected.size());
    for (size_t i = 0; i < text.size();
         ++i)  // a boundary that survives separates the same text on both sides
      if (offsets[i] != kNoOffset && (static_cast<uint8_t>(text[i]) & 0xC0) != 0x80) {
        ASSERT_EQ(normalize_nfc(text.substr(0, i)), expected.substr(0, offsets[i]));
      }
  }
}

TEST(Nfc, EveryCharacterAloneEqualsTheTwin) {
  for (char32_t point = 0; point < 0x110000; ++point) {
    if (point == 0xD800) point = 0xE000;
    if (point == 0x32400) point = 0xE0000;
    if (point == 0xE0200) break;
    std::string text;
    append_utf8(text, point);
    ASSERT_EQ(normalize_nfc(text), nfc_twin(text)) << static_cast<uint32_t>(point);
  }
}

// U+0898 and U+0899 became combining marks in Unicode 14; what the tokenizers library gives for them is text
// as it stands.
TEST(Nfc, MarksYoungerThanUnicode9AreOrdinaryCharacters) {
  for (const char* text : {"a\u0898\u0334", "a\u0899\u0301", "\U00011935\U00011930", "\U00011938"})
    EXPECT_EQ(normalize_nfc(text), text);
  EXPECT_EQ(normalize_nfc("a\u0899e\u0301"), "a\u0899\u00e9");
}

TEST(Nfc, AMegabyteOfCombiningMarksIsCheap) {
  std::string text = "a";
  for (int i = 0; i < 250'000; ++i)
    text += i % 2 == 0 ? "\u0301" : "\u0327";  // classes 230 and 202: all out of order
  const std::string result = normalize_nfc(text);
  EXPECT_TRUE(result.starts_with("\u00E1\u0327\u0327"));
}

TEST(Utf8, RepairsEachBrokenSequenceWithOneReplacement) {
  EXPECT_EQ(repair_utf8("a\xC3"), "a\uFFFD");
  EXPECT_EQ(repair_utf8("\xE4\xB8x"), "\uFFFDx");
  EXPECT_EQ(repair_utf8("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(repair_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(repair_utf8("\xC0\xAF"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(repair_utf8("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repair_utf8("\xFF\xFE"), "\uFFFD\uFFFD");
}

TEST(Utf8, RepairedBytesAreValidAndValidTextIsUnchanged) {
  for (uint32_t round = 0; round < 2000; ++round) {
    std::string bytes = random_text(round);
    EXPECT_EQ(repair_utf8(bytes), bytes);
    const auto bits = random_bits(4, Purpose::test, {.key = 2, .row = round});
    bytes[bits[0] % bytes.size()] = static_cast<char>(bits[1]);
    EXPECT_TRUE(is_valid_utf8(repair_utf8(bytes)));
    EXPECT_EQ(repair_utf8(bytes) == bytes, is_valid_utf8(bytes));
    EXPECT_EQ(offsets_after_nfc(bytes).back(), normalize_nfc(repair_utf8(bytes)).size());
  }
}

TEST(CharacterTable, KnowsTheClassesOfTheSplitRegex) {
  const CharacterTable& table = character_table();
  EXPECT_EQ(table.class_of('a'), CharClass::letter);
  EXPECT_EQ(table.class_of(U'\u4E2D'), CharClass::letter);
  EXPECT_EQ(table.class_of(U'\u00B2'), CharClass::number);
  EXPECT_EQ(table.class_of(U'\u0663'), CharClass::number);
  EXPECT_EQ(table.class_of(U'\u3000'), CharClass::space);
  EXPECT_EQ(table.class_of(U'\u0085'), CharClass::space);
  EXPECT_EQ(table.class_of('\n'), CharClass::newline);
  EXPECT_EQ(table.class_of(U'\u0301'), CharClass::other);
  EXPECT_EQ(table.class_of(U'\u200B'), CharClass::other);
  EXPECT_EQ(table.class_of(0x10FFFF), CharClass::other);
}

}  // namespace
}  // namespace ropd::text
