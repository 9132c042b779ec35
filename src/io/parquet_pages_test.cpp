// Encodings, codecs and limits of single columns.
#include "io/parquet_pages.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/parquet_writer.h"

namespace ropd::io {
namespace {

using namespace ropd::test;  // NOLINT: the writer's vocabulary
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ColumnData decode(const std::string& pages, uint64_t entries, SchemaNode leaf, int codec = kNone,
                  uint64_t budget_bytes = 1 << 20) {
  DecodeBudget budget{budget_bytes};
  static std::string kept;  // texts of uncompressed pages point into the file
  kept = pages;
  leaf.name = "c";
  return decode_column(std::as_bytes(std::span(kept)), {codec, entries, 0, kept.size()}, leaf, budget,
                       "t column c");
}

template <class... Arguments>
std::string error_of(Arguments... arguments) {
  try {
    decode(arguments...);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

SchemaNode text_leaf(uint8_t max_definition = 0) {
  return {.max_definition = max_definition, .type = ParquetType::byte_array};
}

// Dictionary of two texts, then indices in the given hybrid form.
std::string dictionary_pages(const std::string& indices, int count, int bit_width, int codec = kNone) {
  return dictionary_page(plain_texts({"yes", "no"}), 2, codec) +
         data_page_v1(std::string(1, char(bit_width)) + indices, count, 8, codec);
}

TEST(ParquetPages, DictionaryIndicesInRunsAndPacked) {
  EXPECT_THAT(decode(dictionary_pages(hybrid_runs({0, 1, 1}, 1), 3, 1), 3, text_leaf()).values.texts,
              ElementsAre("yes", "no", "no"));
  EXPECT_THAT(
      decode(dictionary_pages(hybrid_packed({1, 0, 1}, 1), 3, 1, kZstd), 3, text_leaf(), kZstd).values.texts,
      ElementsAre("no", "yes", "no"));
  EXPECT_THAT(decode(dictionary_pages(hybrid_packed({1, 0, 1}, 17), 3, 17), 3, text_leaf()).values.texts,
              ElementsAre("no", "yes", "no"));
}

TEST(ParquetPages, DictionaryOfOneEntryNeedsNoIndexBits) {
  EXPECT_THAT(decode(dictionary_pages(std::string(1, char(3 << 1)), 3, 0), 3, text_leaf()).values.texts,
              ElementsAre("yes", "yes", "yes"));
}

TEST(ParquetPages, PlainNumbersAndBooleans) {
  const auto number_page = [](const std::string& body, int count) { return data_page_v1(body, count, 0); };
  EXPECT_THAT(
      decode(number_page(little_endian(uint32_t(-5), 4), 1), 1, {.type = ParquetType::int32}).values.integers,
      ElementsAre(-5));
  EXPECT_THAT(decode(number_page(little_endian(uint32_t(-5), 4), 1), 1,
                     {.type = ParquetType::int32, .is_unsigned = true})
                  .values.integers,
              ElementsAre(4294967291));
  EXPECT_THAT(decode(number_page(little_endian(0x3FF8000000000000, 8), 1), 1, {.type = ParquetType::float64})
                  .values.reals,
              ElementsAre(1.5));
  EXPECT_THAT(decode(number_page("\x05", 3), 3, {.type = ParquetType::boolean}).values.integers,
              ElementsAre(1, 0, 1));
  const std::string runs = hybrid_packed({1, 0, 1}, 1);
  EXPECT_THAT(decode(data_page_v2("", "", little_endian(runs.size(), 4) + runs, 3, 3), 3,
                     {.type = ParquetType::boolean})
                  .values.integers,
              ElementsAre(1, 0, 1));
}

TEST(ParquetPages, FixedLengthTexts) {
  EXPECT_THAT(
      decode(data_page_v1("abcdef", 2, 0), 2, {.type = ParquetType::fixed_byte_array, .type_length = 3})
          .values.texts,
      ElementsAre("abc", "def"));
}

TEST(ParquetPages, WrongDictionaryIndexIsRefused) {
  EXPECT_THAT(error_of(dictionary_pages(hybrid_runs({0, 2}, 2), 2, 2), 2, text_leaf()),
              HasSubstr("dictionary index 2, the dictionary has 2 entries"));
  EXPECT_THAT(error_of(data_page_v1(std::string(1, '\x01') + hybrid_runs({0}, 1), 1, 8), 1, text_leaf()),
              HasSubstr("without a dictionary"));
  EXPECT_THAT(error_of(dictionary_pages(hybrid_runs({0}, 1), 1, 33), 1, text_leaf()),
              HasSubstr("indices of 33 bits"));
}

TEST(ParquetPages, RepeatedDictionaryTextCountsEveryTime) {
  // 60 bytes of file that stand for a gigabyte of text.
  const std::string long_run = "\xC0\x84\x3D";  // RLE run of 500,000
  const std::string pages = dictionary_page(plain_texts({std::string(2000, 'x')}), 1) +
                            data_page_v1(std::string(1, '\0') + long_run, 500000, 8);
  EXPECT_THAT(error_of(pages, 500000, text_leaf(), kNone, uint64_t{64} << 20),
              HasSubstr("more than the limit allows"));
}

TEST(ParquetPages, NullBombIsRefused) {
  const std::string run = "\xFE\xFF\xFF\xFF\x0F" + std::string(1, '\0');
  EXPECT_THAT(
      error_of(data_page_v1(little_endian(run.size(), 4) + run, 2147483647, 0), 2147483647, text_leaf(1)),
      HasSubstr("more than the limit allows"));
}

TEST(ParquetPages, LengthBombsAreRefused) {
  EXPECT_THAT(error_of(data_page_v1(little_endian(0xFFFFFFFF, 4) + "x", 1, 0), 1, text_leaf()),
              HasSubstr("text of 4294967295 bytes"));
  EXPECT_THAT(error_of(data_page_v1("xx", 9, 0), 9, SchemaNode{.type = ParquetType::int64}),
              HasSubstr("9 values of 8 bytes in 2 bytes"));
  EXPECT_THAT(error_of(data_page_v1(little_endian(999, 4) + "x", 1, 0), 1, text_leaf(1)),
              HasSubstr("levels claim 999 bytes"));
}

TEST(ParquetPages, FalseUncompressedSizesAreRefusedBeforeAllocation) {
  for (const int codec : {kSnappy, kGzip, kZstd}) {
    const std::string stored = compress(plain_texts({"hello"}), codec);
    const std::string details = ThriftWriter().i32(1, 1).i32(2, 0).i32(3, 3).i32(4, 3).finish();
    const std::string page = ThriftWriter()
                                 .i32(1, 0)
                                 .i32(2, 400 << 20)
                                 .i32(3, int64_t(stored.size()))
                                 .structure(5, details)
                                 .finish() +
                             stored;
    EXPECT_THAT(error_of(page, 1, text_leaf(), codec, uint64_t{1} << 40), HasSubstr("claims 419430400"))
        << codec;
  }
}

TEST(ParquetPages, UnsupportedEncodingsAndCodecsAreNamed) {
  EXPECT_THAT(error_of(data_page_v1("", 1, 6), 1, text_leaf()), HasSubstr("DELTA_LENGTH_BYTE_ARRAY"));
  EXPECT_THAT(error_of(data_page_v1("", 1, 0), 1, text_leaf(), 4), HasSubstr("brotli"));
  EXPECT_THAT(error_of(data_page_v1(std::string(12, 'x'), 1, 0), 1, SchemaNode{.type = ParquetType::int96}),
              HasSubstr("INT96"));
}

TEST(ParquetPages, LevelsAboveTheMaximumAreRefused) {
  EXPECT_THAT(error_of(data_page_v1(levels_v1({3}), 1, 0), 1, text_leaf(1)), HasSubstr("level 3, at most 1"));
}

TEST(ParquetPages, BrokenUtf8IsRefused) {
  EXPECT_THAT(error_of(data_page_v1(plain_texts({"\xFF\xFE"}), 1, 0), 1, text_leaf()),
              HasSubstr("not valid UTF-8"));
}

TEST(ParquetPages, FewerOrMoreValuesThanTheFooterClaimsAreRefused) {
  EXPECT_THAT(error_of(data_page_v1(plain_texts({"a"}), 1, 0), 2, text_leaf()),
              HasSubstr("pages hold 1 values, the footer claims 2"));
  EXPECT_THAT(error_of(data_page_v1(plain_texts({"a", "b", "c"}), 3, 0), 2, text_leaf()),
              HasSubstr("more values than the 2"));
}

}  // namespace
}  // namespace ropd::io
