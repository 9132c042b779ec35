#include "text/tokenizer_config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::text {
namespace {

TokenizerConfig read(const std::string& json) {
  test::TemporaryDirectory directory;
  write_file_atomically(directory / "tokenizer_config.json", json);
  return read_tokenizer_config(directory.path());
}

TEST(TokenizerConfig, ReadsTokensAsStringsObjectsOrNull) {
  const auto config = read(R"({"bos_token": null, "eos_token": {"content": "<e>"}, "pad_token": "<p>"})");
  EXPECT_EQ(config.bos_token, std::nullopt);
  EXPECT_EQ(config.eos_token, "<e>");
  EXPECT_EQ(config.pad_token, "<p>");
}

TEST(TokenizerConfig, OfNamedTemplatesTheDefaultIsTaken) {
  const auto config = read(
      R"({"chat_template": [{"name": "tool_use", "template": "a"}, {"name": "default", "template": "b"}]})");
  EXPECT_EQ(config.chat_template, "b");
  EXPECT_THROW(read(R"({"chat_template": [{"name": "rag", "template": "a"}]})"), Error);
  EXPECT_THROW(read(R"({"chat_template": 5})"), Error);
}

TEST(TokenizerConfig, AMissingFileIsEmpty) {
  test::TemporaryDirectory directory;
  EXPECT_EQ(read_tokenizer_config(directory.path()).eos_token, std::nullopt);
}

TEST(TokenizerConfig, AWrongKindIsRefused) { EXPECT_THROW(read(R"({"eos_token": 5})"), Error); }

}  // namespace
}  // namespace ropd::text
