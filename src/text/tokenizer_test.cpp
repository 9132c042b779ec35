#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "support/test_data.h"

namespace ropd::text {
namespace {

void expect_golden(const std::string& tokenizer_name, const std::string& golden_name) {
  const auto data = test::data_directory();
  const Tokenizer tokenizer = Tokenizer::load(data / "tokenizers" / tokenizer_name);
  std::ifstream lines(data / "golden" / golden_name);
  size_t num_rows = 0;
  for (std::string line; std::getline(lines, line); ++num_rows) {
    const Json row = parse_json(line, golden_name);
    const auto text = row.at("text").get<std::string>();
    const auto expected = row.at("ids").get<std::vector<Token>>();
    EXPECT_EQ(tokenizer.encode(text), expected) << text;
    EXPECT_EQ(tokenizer.encode_with_offsets(text).ids, expected) << text;
    EXPECT_EQ(tokenizer.decode(expected, /*skip_special=*/false), tokenizer.encode_with_offsets(text).text);
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

}  // namespace
}  // namespace ropd::text
