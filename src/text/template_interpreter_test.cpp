#include "text/template_interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/template_parser.h"

namespace ropd::text {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string run(const std::string& jinja, const std::string& data = "{}") {
  const std::string where = "file";
  return run_template(parse_template(jinja, where), TemplateValue::from_json(data, "data").as_dict(), where);
}

std::string error_of(const std::string& jinja) {
  try {
    run(jinja);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TemplateInterpreter, LoopsKnowTheirPlace) {
  EXPECT_EQ(run("{% for x in [1,2,3] %}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ x }};{% endfor %}"),
            "0TrueFalse1;1FalseFalse2;2FalseTrue3;");
  EXPECT_EQ(run("{% for x in [] %}a{% else %}b{% endfor %}"), "b");
  EXPECT_EQ(run("{% for x in [1,2,3,4] if x > 2 %}{{ x }}{{ loop.length }}{% endfor %}"), "3242");
  EXPECT_EQ(run("{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}", R"({"d": {"b": 1, "a": 2}})"),
            "b=1,a=2,");
  EXPECT_EQ(run("{% for x in [1,2,3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}"), "13");
  EXPECT_EQ(run("{% for x in [1,2,3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}"), "1");
  EXPECT_EQ(run("{% for c in 'h\u00e9' %}{{ c }}.{% endfor %}"), "h.\u00e9.");
}

TEST(TemplateInterpreter, AssignmentsEndWithTheLoopUnlessInANamespace) {
  EXPECT_EQ(run("{% set x = 1 %}{% for i in [1,2] %}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}"), "551");
  EXPECT_EQ(
      run("{% set n = namespace(x=1) %}{% for i in [1,2] %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}"),
      "4");
  EXPECT_EQ(run("{% if true %}{% set x = 3 %}{% endif %}{{ x }}"), "3");
  EXPECT_EQ(run("{% set a, b = 1, 2 %}{{ b }}{{ a }}"), "21");
  EXPECT_EQ(run("{% set x %}a{{ 1 }}{% endset %}{{ x }}{{ x }}"), "a1a1");
}

TEST(TemplateInterpreter, SlicesFollowPython) {
  EXPECT_EQ(run("{{ [1,2,3,4][::-1] }}{{ [1,2,3,4][1:3] }}{{ [1,2,3,4][-2:] }}{{ [1,2,3,4][:-1] }}"),
            "[4, 3, 2, 1][2, 3][3, 4][1, 2, 3]");
  EXPECT_EQ(run("{{ '\u00e9abc'[1:] }}{{ 'abc'[-1] }}{{ 'abc'[::2] }}{{ [1,2,3][5:] }}{{ [1,2,3][9] }}"),
            "abccac[]");
  EXPECT_EQ(run("{{ [1,2,3,4,5][3:0:-2] }}"), "[4, 2]");
}

TEST(TemplateInterpreter, OperatorsHavePythonsPrecedence) {
  EXPECT_EQ(run("{{ 1 + 2 * 3 - 4 // 3 }}{{ 7 % 3 }}{{ -7 // 2 }}{{ -7 % 3 }}{{ 2 ** 3 }}{{ 3 / 2 }}"),
            "61-4281.5");
  EXPECT_EQ(run("{{ not false and false or true }}{{ not x is defined }}{{ 1 in [1] and 2 not in [1] }}"),
            "TrueTrueTrue");
  EXPECT_EQ(
      run("{{ 'a' ~ (1 + 2) }}{{ 'a' + {'b': [1]} | tojson }}{{ 'x' if false else 'y' }}{{ 'x' if false }}"),
      "a3a{\"b\": [1]}y");
  EXPECT_EQ(run("{{ 'a' < 'b' }}{{ 1 <= 1.0 }}{{ [1] == [1] }}{{ none == x }}"), "TrueTrueTrueFalse");
  EXPECT_EQ(run("{{ 'ab' * 2 }}{{ [1] + [2] }}{{ '' or 'z' }}{{ 'p' and 'q' }}"), "abab[1, 2]zq");
}

TEST(TemplateInterpreter, MacrosSeeGlobalsAndTheirArguments) {
  EXPECT_EQ(run("{% set g = 'G' %}{% macro f(a, b='B') %}{{ a }}{{ b }}{{ g }}{{ i }}{% endmacro %}"
                "{% for i in [1] %}{{ f('A') }}{{ f(b=2, a=1) }}{% endfor %}"),
            "ABG12G");
  EXPECT_THAT(error_of("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}"), HasSubstr("takes 1"));
}

TEST(TemplateInterpreter, UndefinedPrintsNothingButHasNoAttributes) {
  EXPECT_EQ(run("{{ x }}{{ d.x }}{% for i in x %}a{% endfor %}{{ x | length }}", R"({"d": {}})"), "0");
  EXPECT_THAT(error_of("\n{{ x.y }}"), AllOf(HasSubstr("file:2"), HasSubstr("\"x\" is undefined")));
  EXPECT_THAT(error_of("{{ 'a' + x }}"), HasSubstr("undefined"));
}

TEST(TemplateInterpreter, UnknownFunctionsFiltersAndTestsAreNamedWithTheirLine) {
  EXPECT_THAT(error_of("\n{{ strftime_now('%d') }}"), AllOf(HasSubstr("file:2"), HasSubstr("strftime_now")));
  EXPECT_THAT(error_of("{{ [1] | groupby('x') }}"), HasSubstr("groupby"));
  EXPECT_THAT(error_of("{{ raise_exception('no system role') }}"), HasSubstr("no system role"));
}

TEST(TemplateInterpreter, EndlessWorkIsStopped) {
  EXPECT_THAT(error_of("{% for a in range(1000000000) %}{% endfor %}"), HasSubstr("steps"));
  EXPECT_THAT(
      error_of("{% for a in range(3000) %}{% for b in range(3000) %}{% for c in range(3000) %}x{% endfor %}"
               "{% endfor %}{% endfor %}"),
      HasSubstr("steps"));
  EXPECT_THAT(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("recursion"));
  EXPECT_NE(
      error_of(
          "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}"),
      "");
  EXPECT_NE(
      error_of("{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}"),
      "");
  EXPECT_NE(error_of("{% set n = namespace(x=[1]) %}{% for i in range(90) %}{% set n.x = [n.x, n.x] %}{% "
                     "endfor %}{{ n.x }}"),
            "");
  EXPECT_NE(error_of("{{ 'abcdefgh' * 100000000000 }}"), "");
  EXPECT_NE(error_of("{{ 2 ** 1000 }}"), "");
  EXPECT_NE(error_of("{{ 9223372036854775807 + 1 }}"), "");
  EXPECT_NE(error_of("{{ 1 // 0 }}{{ 1 % 0 }}"), "");
}

}  // namespace
}  // namespace ropd::text
