#include "report/samples_section.h"

#include <gmock/gmock.h>

namespace ropd::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

SampleQuestion question(std::optional<double> teacher) {
  SampleResponse response{
      .query = {"digits", "q1"},
      .answer = "6",
      .text = "5\n",
      .num_tokens = 3,
      .boxed = {},
      .question = "2 + 4 < 7?",
      .correct = false,
      .tokens = {{{"5", 5, -0.5, teacher}, {{"5", 5, -0.5, teacher}, {"6", 6, -1.5, -0.1}}},
                 {{"\n", 9, -0.1, teacher ? std::optional(-0.1) : std::nullopt}, {}}}};
  return {.query = response.query,
          .question = response.question,
          .answer = "6",
          .responses = {{"R-OPD", response}}};
}

TEST(SamplesSection, MarksTokensAndSaysTheSameInATable) {
  const std::string html = samples_html({question(-3.5)});
  EXPECT_THAT(html, HasSubstr("2 + 4 &lt; 7?"));
  EXPECT_THAT(html, HasSubstr("expected answer <code>6</code>"));
  EXPECT_THAT(
      html, HasSubstr("<span class=\"token less3\" tabindex=\"-1\" data-about=\"student 61 %, teacher 3.0 %, "
                      "log-ratio −3.00"));
  EXPECT_THAT(html, HasSubstr(">↵\n</span>"));
  EXPECT_THAT(html, HasSubstr("… 1 more tokens"));
  EXPECT_THAT(html, HasSubstr("3 tokens · nothing boxed · wrong · mean log-ratio −1.50"));
  EXPECT_THAT(html,
              HasSubstr("<td>−3.00</td><td class=\"text\"><code>6</code></td>"));  // what the teacher prefers
  EXPECT_THAT(marks_legend({question(-3.5)}), HasSubstr("<span class=\"token more2\">+1</span>"));
}

TEST(SamplesSection, WithoutATeacherThereIsNothingToCompare) {
  const std::string html = samples_html({question(std::nullopt)});
  EXPECT_EQ(marks_legend({question(std::nullopt)}), "");
  EXPECT_THAT(html, Not(HasSubstr("Strongest")));
  EXPECT_THAT(html, Not(HasSubstr("log-ratio")));
  EXPECT_THAT(html, HasSubstr("student 61 %, teacher –"));
}

}  // namespace
}  // namespace ropd::report
