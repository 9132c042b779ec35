#include "text/template_lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd::text {
namespace {

// Only the plain text of a template, joined by '|'.
std::string texts(const std::string& jinja) {
  std::string result;
  for (const auto& word : lex_template(jinja, "t"))
    if (word.kind == TemplateWord::Kind::text) result += (result.empty() ? "" : "|") + word.text;
  return result;
}

TEST(TemplateLexer, BlocksTrimTheirLineAndPrintsDoNot) {
  EXPECT_EQ(texts("a\n  {% if x %}\n b\n  {{ y }}\nc"), "a\n| b\n  |\nc");
  EXPECT_EQ(texts("a {% if x %}\nb"), "a |b");  // not at a line's begin: the space stays
  EXPECT_EQ(texts("a\n  {%+ if x +%}\nb"), "a\n  |\nb");
}

TEST(TemplateLexer, MinusSignsStripAllWhiteSpace) {
  EXPECT_EQ(texts("a \n {%- if x -%} \n\n b {{- y -}}  c"), "a|b|c");
}

TEST(TemplateLexer, CommentsGoWithTheirNewline) {
  EXPECT_EQ(texts("a\n  {# x %} {{ #}\nb{#- y -#} \nc"), "a\n|b|c");
}

TEST(TemplateLexer, OneNewlineAtTheEndIsDropped) {
  EXPECT_EQ(texts("a\n\n"), "a\n");
  EXPECT_EQ(texts("a\r\nb\r"), "a\nb");
}

TEST(TemplateLexer, StringsKnowPythonsEscapes) {
  const auto words = lex_template(R"({{ 'a\n\'\\\x41\u00e9\q' "b'" }})", "t");
  EXPECT_EQ(words[1].text, "a\n'\\A\u00e9\\q");
  EXPECT_EQ(words[2].text, "b'");
}

TEST(TemplateLexer, ErrorsNameTheLine) {
  const auto error_of = [](const std::string& jinja) -> std::string {
    try {
      lex_template(jinja, "file");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of("\n\n{{ 'a"), testing::HasSubstr("file:3"));
  EXPECT_THAT(error_of("\n{% if"), testing::HasSubstr("file:2"));
  EXPECT_THAT(error_of("{# x"), testing::HasSubstr("file:1"));
  EXPECT_THAT(error_of("{{ a ; }}"), testing::HasSubstr("';"));
  EXPECT_NE(error_of("{{ '\\ud800' }}"), "");
  EXPECT_NE(error_of("\xFF"), "");
}

}  // namespace
}  // namespace ropd::text
