#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text) {
  try {
    parse_json(text, "file.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ParseJson, GivesTheDocument) {
  const Json json =
      parse_json(R"({"a": [1, -2, 2.5, true, null, "x"], "b": {"c": 18446744073709551615}})", "test");
  EXPECT_EQ(json["a"].size(), 6u);
  EXPECT_EQ(json["a"][1].get<int>(), -2);
  EXPECT_EQ(json["a"][2].get<double>(), 2.5);
  EXPECT_EQ(json["b"]["c"].get<uint64_t>(), 18446744073709551615u);
  EXPECT_EQ(parse_json("3", "test").get<int>(), 3);
}

TEST(ParseJson, RefusesDuplicateKeysInOneObjectOnly) {
  EXPECT_THAT(error_of(R"({"a": 1, "a": 2})"), HasSubstr("file.json: the key \"a\" occurs twice"));
  EXPECT_EQ(error_of(R"([{"a": 1}, {"a": 2}])"), "");
}

TEST(ParseJson, RefusesTextAfterTheDocument) {
  EXPECT_THAT(error_of("{} x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(""), HasSubstr("not valid JSON"));
}

TEST(ParseJson, RefusesInvalidUtf8AndLoneSurrogates) {
  EXPECT_THAT(error_of("\"\xff\""), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of("\"\xc3\""), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of(R"("\ud800")"), HasSubstr("surrogate"));
}

TEST(ParseJson, RefusesNumbersThatNoDoubleHolds) { EXPECT_NE(error_of("1e999"), ""); }

TEST(ParseJson, BoundsTheDepth) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(error_of(nested(64)), "");
  EXPECT_THAT(error_of(nested(65)), HasSubstr("deeper than 64"));
  EXPECT_THAT(error_of(std::string(1000000, '[')), HasSubstr("deeper than 64"));
}

}  // namespace
}  // namespace ropd
