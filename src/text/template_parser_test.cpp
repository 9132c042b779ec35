#include "text/template_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd::text {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(const std::string& jinja) {
  try {
    parse_template(jinja, "file");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TemplateParser, UnknownTagsAreRefusedByNameAndLine) {
  for (const std::string tag :
       {"include 'x'", "extends 'x'", "block a", "call x()", "filter upper", "raw", "import 'x' as y"})
    EXPECT_THAT(error_of("\n{% " + tag + " %}"),
                AllOf(HasSubstr("file:2"), HasSubstr("\"" + tag.substr(0, tag.find(' ')) + "\"")));
}

TEST(TemplateParser, UnbalancedTagsAreRefused) {
  EXPECT_THAT(error_of("{% if x %}\n{% for y in z %}{% endif %}"), HasSubstr("file:2"));
  EXPECT_NE(error_of("{% endif %}"), "");
  EXPECT_NE(error_of("{% if x %}"), "");
  EXPECT_NE(error_of("{% for x in y %}{% endif %}"), "");
  EXPECT_NE(error_of("{% break %}"), "");
  EXPECT_NE(error_of("{% set x %}"), "");
  EXPECT_NE(error_of("{% macro f( %}"), "");
}

TEST(TemplateParser, BrokenExpressionsAreRefused) {
  for (const char* jinja :
       {"{{ }}", "{{ a + }}", "{{ (a }}", "{{ a b }}", "{{ a[ }}", "{{ a[1:2:3:4] }}", "{{ {1 2} }}",
        "{{ f(a=1, 2) }}", "{{ f(*a) }}", "{{ a | 5 }}", "{{ a < b < c }}", "{{ 99999999999999999999 }}",
        "{% set = 1 %}", "{% for 1 in x %}{% endfor %}", "{% for x in y recursive %}{% endfor %}"})
    EXPECT_NE(error_of(jinja), "") << jinja;
}

TEST(TemplateParser, NestingAndChainsAreBounded) {
  EXPECT_THAT(error_of("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"),
              HasSubstr("deeper"));
  std::string blocks, chain = "{{ 1", attributes = "{{ a";
  for (int i = 0; i < 5000; ++i) blocks += "{% if x %}", chain += " + 1", attributes += ".b";
  EXPECT_THAT(error_of(blocks), HasSubstr("deeper"));
  EXPECT_THAT(error_of(chain + " }}"), HasSubstr("chain"));
  EXPECT_THAT(error_of(attributes + " }}"), HasSubstr("chain"));
}

}  // namespace
}  // namespace ropd::text
