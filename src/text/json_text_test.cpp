#include "text/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd::text {
namespace {

std::string error_of(const std::string& json) {
  try {
    JsonDocument document(json, "file.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonText, KeepsTheOrderOfKeys) {
  const JsonDocument document(R"({"b": 1, "a": 2})", "file.json");
  std::string keys;
  const simdjson::dom::object object = document.root().get<simdjson::dom::object>().value_unsafe();
  for (const auto& [key, value] : object) keys += key;
  EXPECT_EQ(keys, "ba");
}

TEST(JsonText, AByteOrderMarkIsSkipped) { EXPECT_EQ(error_of("\xEF\xBB\xBF{}"), ""); }

TEST(JsonText, DeepNestingIsRefused) {
  EXPECT_THAT(error_of(std::string(100'000, '[') + std::string(100'000, ']')), testing::HasSubstr("deeper"));
}

TEST(JsonText, BrokenUtf8NamesTheLine) {
  EXPECT_THAT(error_of("{\n\"a\":\n\"\xFF\"}"), testing::HasSubstr("file.json: line 3"));
}

TEST(JsonText, LoneSurrogatesTrailingTextAndEmptyFilesAreRefused) {
  EXPECT_NE(error_of(R"({"a": "\ud800"})"), "");
  EXPECT_NE(error_of(R"({"a": "\udc00"})"), "");
  EXPECT_NE(error_of("{} {}"), "");
  EXPECT_NE(error_of(""), "");
  EXPECT_NE(error_of("{\"a\": 1"), "");
}

}  // namespace
}  // namespace ropd::text
