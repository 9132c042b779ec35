#include "io/jsonl.h"

#include <gmock/gmock.h>
#include <zstd.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> lines_of(std::string_view text, uint64_t limit = 1000) {
  JsonlReader reader(text, "f.jsonl", limit);
  std::vector<std::string> lines;
  while (const auto line = reader.next())
    lines.push_back(std::to_string(line->number) + "|" + std::string(line->text));
  return lines;
}

std::string error_of(std::string_view text, uint64_t limit = 1000) {
  try {
    JsonlReader reader(text, "f.jsonl", limit);
    for_each_json_row(reader, [](Json&&, const std::string&) {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Jsonl, GivesLinesWithEditorNumbers) {
  EXPECT_THAT(lines_of("{\"a\":1}\n\n  \n{\"b\":2}"), ElementsAre("1|{\"a\":1}", "4|{\"b\":2}"));
}

TEST(Jsonl, DropsByteOrderMarkAndCarriageReturns) {
  EXPECT_THAT(lines_of("\xEF\xBB\xBF{}\r\n{}\r\n"), ElementsAre("1|{}", "2|{}"));
}

TEST(Jsonl, EmptyFileHasNoLines) {
  EXPECT_TRUE(lines_of("").empty());
  EXPECT_TRUE(lines_of("\n\n").empty());
}

TEST(Jsonl, LineAtTheLimitIsReadAndOneMoreByteIsRefused) {
  EXPECT_EQ(lines_of("{\"a\": 1}", 8).size(), 1u);
  EXPECT_THROW(lines_of("{\"a\":  1}", 8), Error);
  EXPECT_THROW(lines_of("{\"a\":  1}\n", 8), Error);
}

TEST(Jsonl, LongLineNamesFileAndLine) {
  EXPECT_THAT(error_of("{}\n" + std::string(5000, 'x')), HasSubstr("f.jsonl:2: line longer than 1000 bytes"));
}

TEST(Jsonl, BrokenUtf8NamesFileAndLine) {
  EXPECT_THAT(error_of("{}\n{\"a\": \"\xC3\x28\"}\n"), HasSubstr("f.jsonl:2: not valid UTF-8"));
}

TEST(Jsonl, WrongJsonNamesFileAndLine) {
  EXPECT_THAT(error_of("{}\n{}\n{\"a\": }\n"), HasSubstr("f.jsonl:3"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("f.jsonl:1: expected a JSON object, got array"));
}

TEST(Jsonl, DeepNestingIsRefused) {
  EXPECT_THAT(error_of("{\"a\":" + std::string(400, '[') + std::string(400, ']') + "}"),
              HasSubstr("f.jsonl:1"));
}

TEST(Jsonl, ReadsAFile) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "rows.jsonl", "{\"a\":1}\n{\"a\":2}\n");
  JsonlReader reader(directory / "rows.jsonl");
  int64_t sum = 0;
  for_each_json_row(reader, [&](Json&& row, const std::string&) { sum += row["a"].get<int64_t>(); });
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(reader.position(), reader.size());
}

TEST(Jsonl, ReadsACompressedFile) {
  const test::TemporaryDirectory directory;
  const std::string rows = "\xEF\xBB\xBF{\"a\":1}\n{\"a\":2}\n";
  std::string packed(ZSTD_compressBound(rows.size()), 0);
  packed.resize(ZSTD_compress(packed.data(), packed.size(), rows.data(), rows.size(), 1));
  write_file_atomically(directory / "rows.jsonl.zst", packed);
  JsonlReader reader(directory / "rows.jsonl.zst");
  int64_t sum = 0;
  for_each_json_row(reader, [&](Json&& row, const std::string&) { sum += row["a"].get<int64_t>(); });
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(reader.size(), rows.size());
}

}  // namespace
}  // namespace ropd::io
