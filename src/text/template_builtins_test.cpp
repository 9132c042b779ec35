#include "text/template_builtins.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/template_interpreter.h"
#include "text/template_parser.h"

namespace ropd::text {
namespace {

// Expected values were computed with Python's Jinja 3.1.
std::string run(const std::string& expression) {
  const auto data = TemplateValue::from_json(
      R"({"s": "  Ab c\n", "l": [3, 1, 2], "d": {"k": "v", "n": null}, "m": [{"r": "u", "n": 1}, {"r": "a"}, {"r": "u"}]})",
      "data");
  const std::string where = "t";
  return run_template(parse_template("{{ " + expression + " }}", where), data.as_dict(), where);
}

TEST(TemplateBuiltins, StringMethods) {
  EXPECT_EQ(run("s.strip()"), "Ab c");
  EXPECT_EQ(run("'xxaxx'.strip('x') ~ '|' ~ 'xxaxx'.lstrip('x') ~ '|' ~ 'xxaxx'.rstrip('x')"), "a|axx|xxa");
  EXPECT_EQ(run("'a</t>b</t>c'.split('</t>')[-1]"), "c");
  EXPECT_EQ(run("' a  b '.split()"), "['a', 'b']");
  EXPECT_EQ(run("'a,b,c'.split(',', 1)"), "['a', 'b,c']");
  EXPECT_EQ(run("'abc'.startswith('ab') and 'abc'.endswith(('x', 'c'))"), "True");
  EXPECT_EQ(run("'aXbX'.replace('X', '-') ~ 'aXbX'.replace('X', '-', 1)"), "a-b-a-bX");
  EXPECT_EQ(run("'aB'.upper() ~ 'aB'.lower() ~ 'aB'.capitalize() ~ 'ab cd'.title()"), "ABabAbAb Cd");
  EXPECT_EQ(run("'\u00e9ab'.find('b') ~ 'aba'.count('a')"), "22");
  EXPECT_EQ(run("'-'.join(['a', 'b'])"), "a-b");
  EXPECT_EQ(run("'abc'.removeprefix('a').removesuffix('c')"), "b");
  EXPECT_THROW(run("'a'.encode()"), Error);
}

TEST(TemplateBuiltins, DictMethods) {
  EXPECT_EQ(run("d.items()"), "[['k', 'v'], ['n', None]]");
  EXPECT_EQ(run("d.keys() | list ~ d.values() | list"), "['k', 'n']['v', None]");
  EXPECT_EQ(run("d.get('k') ~ d.get('x') ~ d.get('x', 1)"), "vNone1");
  EXPECT_THROW(run("d.update({})"), Error);
}

TEST(TemplateBuiltins, Filters) {
  EXPECT_EQ(run("s | trim ~ s | length"), "Ab c7");
  EXPECT_EQ(run("l | length ~ l | first ~ l | last ~ l | join('-')"), "3323-1-2");
  EXPECT_EQ(run("x | default('a') ~ '' | default('b') ~ '' | default('c', true)"), "ac");
  EXPECT_EQ(run("m | selectattr('r', 'equalto', 'u') | list | length"), "2");
  EXPECT_EQ(run("m | rejectattr('n') | map(attribute='r') | join(',')"), "a,u");
  EXPECT_EQ(run("('12' | int + 1) ~ 'x' | int(5)"), "135");
  EXPECT_EQ(run("d | tojson"), R"({"k": "v", "n": null})");
  EXPECT_EQ(run("l | reverse | list"), "[2, 1, 3]");
  EXPECT_EQ(run("5 | string ~ (-3) | abs"), "53");
  EXPECT_THROW(run("l | sort"), Error);
}

TEST(TemplateBuiltins, Tests) {
  EXPECT_EQ(run("(x is defined) ~ (d is defined) ~ (d.n is none) ~ (d is mapping)"), "FalseTrueTrueTrue");
  EXPECT_EQ(run("(s is string) ~ (l is sequence) ~ (l is iterable) ~ (1 is number)"), "TrueTrueTrueTrue");
  EXPECT_EQ(run("(false is false) ~ (0 is false) ~ (3 is odd) ~ (3 is not even)"), "TrueFalseTrueTrue");
  EXPECT_EQ(run("(1 is in [1, 2]) ~ (3 is eq 3)"), "TrueTrue");
  EXPECT_THROW(run("s is prime"), Error);
}

}  // namespace
}  // namespace ropd::text
