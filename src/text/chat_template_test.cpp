#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "support/test_data.h"
#include "support/test_tokenizer.h"

namespace ropd::text {
namespace {

void expect_golden(const std::string& model, const std::string& golden, size_t num_expected) {
  const auto data = test::data_directory();
  const ChatTemplate chat = ChatTemplate::load(data / "tokenizers" / model);
  const Tokenizer& tokenizer = data_tokenizer(model);
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

TEST(ChatTemplate, AMessageListAndItsJsonRenderAlike) {
  const ChatTemplate chat = ChatTemplate::parse(
      "{% for m in messages %}[{{ m.role }}]{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}>{% "
      "endif %}",
      "t");
  const std::vector<Message> messages = {{"user", "a\n\"b"}, {"assistant", "c"}};
  const std::string expected = "[user]a\n\"b[assistant]c";
  EXPECT_EQ(chat.render(messages, {.add_generation_prompt = true}), expected + ">");
  EXPECT_EQ(chat.render(messages, {.add_generation_prompt = false}), expected);
  EXPECT_EQ(chat.render(
                TemplateValue::from_json(
                    R"([{"role": "user", "content": "a\n\"b"}, {"role": "assistant", "content": "c"}])", "m"),
                TemplateValue::none(), {.add_generation_prompt = false}),
            expected);
}

TEST(ChatTemplate, ThinkingIsUndefinedUnlessAsked) {
  const ChatTemplate chat = ChatTemplate::parse(
      "{{ 'u' if enable_thinking is not defined else enable_thinking }}{{ tools is none }}{{ bos_token }}",
      "t");
  const std::vector<Message> messages = {{"user", "a"}};
  EXPECT_EQ(chat.render(messages), "uTrue");
  EXPECT_EQ(chat.render(messages, {.enable_thinking = false}), "FalseTrue");
}

TEST(ChatTemplate, TheFileGoesBeforeTheInlineTemplateAndTokensAreGiven) {
  test::TemporaryDirectory directory;
  EXPECT_FALSE(ChatTemplate::exists(directory.path()));
  EXPECT_THROW((void)ChatTemplate::load(directory.path()), Error);
  write_file_atomically(
      directory / "tokenizer_config.json",
      R"({"bos_token": "<b>", "eos_token": {"content": "<e>"}, "chat_template": "inline"})");
  EXPECT_EQ(ChatTemplate::load(directory.path()).render(std::vector<Message>{{"user", "a"}}), "inline");
  const std::string inline_hash = ChatTemplate::load(directory.path()).hash();
  write_file_atomically(directory / "chat_template.jinja", "{{ bos_token }}file{{ eos_token }}\n");
  EXPECT_EQ(ChatTemplate::load(directory.path()).render(std::vector<Message>{{"user", "a"}}), "<b>file<e>");
  EXPECT_NE(ChatTemplate::load(directory.path()).hash(), inline_hash);
}

TEST(ChatTemplate, WrongMessagesAreRefused) {
  const ChatTemplate chat = ChatTemplate::parse("x", "t");
  for (const char* messages : {"[]", "{}", "[5]", "[{}]", R"([{"role": 5}])"})
    EXPECT_THROW((void)chat.render(TemplateValue::from_json(messages, "m"), TemplateValue::none()), Error)
        << messages;
}

// Expected texts were made with Python's Jinja 3.1 set up as transformers does it.
TEST(ChatTemplate, ToolsAndToolCallsRenderAsInPython) {
  ROPD_NEEDS_DATA();
  const ChatTemplate chat = ChatTemplate::load(test::data_directory() / "tokenizers/qwen3");
  const auto messages = TemplateValue::from_json(
      R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls":
          [{"type": "function", "function": {"name": "f", "arguments": {"z": 1, "a": [1.0, "\u00e9"]}}}]},
          {"role": "tool", "content": "r"}])",
      "m");
  const auto tools =
      TemplateValue::from_json(R"([{"type": "function", "function": {"name": "f"}}])", "tools");
  const std::string text = chat.render(messages, tools);
  EXPECT_THAT(text, testing::HasSubstr(
                        "<tools>\n{\"type\": \"function\", \"function\": {\"name\": \"f\"}}\n</tools>"));
  EXPECT_THAT(text, testing::HasSubstr("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"z\": 1, \"a\": "
                                       "[1.0, \"\u00e9\"]}}\n</tool_call>"));
  EXPECT_THAT(text, testing::HasSubstr("<|im_start|>user\n<tool_response>\nr\n</tool_response><|im_end|>\n"));
}

TEST(ChatTemplate, EveryTemplateOfTheFamiliesIsParsed) {
  ROPD_NEEDS_DATA();
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::data_directory() / "tokenizers/templates")) {
    const ChatTemplate chat = ChatTemplate::parse(read_file(entry.path()), entry.path().string());
    EXPECT_THAT(chat.render(std::vector<Message>{{"user", "QUESTION"}}), testing::HasSubstr("QUESTION"));
    ++count;
  }
  EXPECT_EQ(count, 4u);
}

}  // namespace
}  // namespace ropd::text
