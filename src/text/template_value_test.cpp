#include "text/template_value.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd::text {
namespace {

TemplateValue value(const std::string& json) { return TemplateValue::from_json(json, "test"); }

TEST(TemplateValue, PrintsAsPythonDoes) {
  EXPECT_EQ(value("true").text(), "True");
  EXPECT_EQ(value("null").text(), "None");
  EXPECT_EQ(TemplateValue().text(), "");
  EXPECT_EQ(value("[1, 2.0, \"a'b\", {\"k\": \"x\\n\"}]").text(), "[1, 2.0, \"a'b\", {'k': 'x\\n'}]");
  EXPECT_EQ(value("[0.1, 1e16, 1e-5, 123456.75, -0.0, 1e22, 100000.0]").text(),
            "[0.1, 1e+16, 1e-05, 123456.75, -0.0, 1e+22, 100000.0]");
}

TEST(TemplateValue, WritesJsonAsPythonDoesWithKeysInOrder) {
  EXPECT_EQ(value(R"({"b":[1,2],"a":{"x":null,"y":"\u00e9\"\u0001"}})").json(),
            "{\"b\": [1, 2], \"a\": {\"x\": null, \"y\": \"\u00e9\\\"\\u0001\"}}");
  EXPECT_EQ(value(R"({"b":[1],"a":{}})").json(2), "{\n  \"b\": [\n    1\n  ],\n  \"a\": {}\n}");
  EXPECT_THROW(TemplateValue().json(), Error);
}

TEST(TemplateValue, ComparesByContent) {
  EXPECT_TRUE(value("[1, {\"a\": 2, \"b\": 3}]") == value("[1.0, {\"b\": 3, \"a\": 2}]"));
  EXPECT_TRUE(value("true") == value("1"));
  EXPECT_FALSE(value("\"1\"") == value("1"));
}

TEST(TemplateValue, DepthAndSharedWeightAreBounded) {
  TemplateValue deep = TemplateValue::none();
  EXPECT_THROW(for (int i = 0; i < 200; ++i) deep = TemplateValue::list({deep}), Error);
  TemplateValue wide = TemplateValue::none();
  EXPECT_THROW(for (int i = 0; i < 60; ++i) wide = TemplateValue::list({wide, wide}), Error);
}

TEST(TemplateValue, ANamespaceCannotHoldItself) {
  const TemplateValue space = TemplateValue::name_space({});
  EXPECT_THROW(space.assign("x", space), Error);
  EXPECT_THROW(TemplateValue::list({space}), Error);
}

}  // namespace
}  // namespace ropd::text
