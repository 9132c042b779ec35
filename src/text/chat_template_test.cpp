#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "support/test_data.h"
#include "text/tokenizer.h"

namespace ropd::text {
namespace {

void expect_golden(const std::string& model, const std::string& golden, size_t num_expected) {
  const auto data = test::data_directory();
  const ChatTemplate chat = ChatTemplate::load(data / "tokenizers" / model);
  const Tokenizer tokenizer = Tokenizer::load(data / "tokenizers" / model);
  std::ifstream lines(data / "golden" / golden);
  size_t num_rows = 0;
  for (std::string line; std::getline(lines, line); ++num_rows) {
    const Json row = parse_json(line, golden);
    RenderOptions options{.add_generation_prompt = row.at("add_generation_prompt").get<bool>(),
                          .enable_thinking = {}};
    if (row.contains("enable_thinking")) options.enable_thinking = row.at("enable_thinking").get<bool>();
    const TemplateValue messages = TemplateValue::from_json(row.at("messages").dump(), golden);
    const std::string text = chat.render(messages, TemplateValue::none(), options);
    EXPECT_EQ(text, row.at("text").get<std::string>());
    EXPECT_EQ(tokenizer.encode(text), row.at("ids").get<std::vector<Token>>());
  }
  EXPECT_EQ(num_rows, num_expected);
}

TEST(ChatTemplate, GivesTheGoldenTextAndIdsOfQwen3) {
  ROPD_NEEDS_DATA();
  expect_golden("qwen3", "chat_qwen3.jsonl", 22);
}

TEST(ChatTemplate, GivesTheGoldenTextAndIdsOfQwen25) {
  ROPD_NEEDS_DATA();
  expect_golden("qwen2_5", "chat_qwen2_5.jsonl", 20);
}

}  // namespace
}  // namespace ropd::text
