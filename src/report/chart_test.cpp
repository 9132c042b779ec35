// Under sanitizers gcc 12 takes the insides of std::regex for uninitialized.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "report/chart.h"

#include <gmock/gmock.h>

#include <cmath>
#include <regex>

namespace ropd::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

LineChart two_lines() {
  return {.id = "c",
          .title = "Title",
          .description = "What it is.",
          .x = {.label = "x"},
          .y = {.label = "y"},
          .series = {{.name = "first", .x = {1, 2, 3}, .y = {10, 20, 30}, .style = 0},
                     {.name = "second", .x = {1, 2, 3}, .y = {12, 18, 29}, .style = 1}}};
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// y of the label that holds `name`.
double label_y(const std::string& svg, const std::string& name) {
  std::smatch match;
  const std::regex pattern("<text x=\"[-0-9.]+\" y=\"([-0-9.]+)\" [^>]*class=\"label[^>]*>" + name);
  return std::regex_search(svg, match, pattern) ? std::stod(match[1]) : NAN;
}

TEST(RoundTicks, CoverTheRangeWithRoundSteps) {
  EXPECT_THAT(round_ticks(0, 100, 5), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(round_ticks(3, 97, 5), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(round_ticks(-1, 1, 4), ElementsAre(-1, -0.5, 0, 0.5, 1));
  EXPECT_LE(round_ticks(NAN, 1, 5).size(), 2u);
  EXPECT_LE(round_ticks(5, 5, 5).size(), 2u);
  EXPECT_LE(round_ticks(-1e308, 1e308, 5).size(), 64u);
}

// The numbers at the y axis.
std::vector<double> y_ticks(const LineChart& chart) {
  const std::string svg = to_svg(chart);
  const std::regex pattern("text-anchor=\"end\" class=\"tick\">([^<]*)<");
  std::vector<double> ticks;
  for (std::sregex_iterator at(svg.begin(), svg.end(), pattern), end; at != end; ++at) {
    const std::string text = (*at)[1];
    ticks.push_back(text.starts_with("−") ? -1 : std::stod(text));
  }
  return ticks;
}

TEST(LineChart, AnAxisOfSharesEndsAtAHundred) {
  for (const double value : {70.0, 100.0, 0.0, 97.5}) {
    LineChart chart = two_lines();
    chart.series = {{.name = "only", .x = {1}, .y = {value}}};
    chart.y.is_share = true;
    ASSERT_GE(y_ticks(chart).size(), 2u);
    EXPECT_THAT(y_ticks(chart), testing::Each(testing::AllOf(testing::Ge(0), testing::Le(100)))) << value;
  }
}

TEST(LineChart, HasATextAlternativeWithItsNumbers) {
  const std::string svg = to_svg(two_lines());
  EXPECT_THAT(svg, HasSubstr("role=\"img\""));
  EXPECT_THAT(svg, HasSubstr("aria-labelledby=\"c-title c-desc\""));
  EXPECT_THAT(svg, HasSubstr("<title id=\"c-title\">Title</title>"));
  EXPECT_THAT(svg, HasSubstr("What it is. first: 1 → 10, 2 → 20, 3 → 30. second: 1 → 12"));
}

TEST(LineChart, LabelsLinesDirectlyAndApart) {
  const std::string svg = to_svg(two_lines());
  const double first = label_y(svg, "first"), second = label_y(svg, "second");
  EXPECT_GE(second - first, 13);  // 30 is above 29, both labels are readable
}

TEST(LineChart, EveryPointIsAMarkWithItsValue) {
  const std::string svg = to_svg(two_lines());
  EXPECT_EQ(count(svg, "class=\"mark"), 6u);
  EXPECT_THAT(svg, HasSubstr("<title>second: 3, 29</title>"));
}

TEST(LineChart, AMissingValueBreaksTheLine) {
  LineChart chart = two_lines();
  chart.series = {{.name = "gap", .x = {1, 2, 3, 4}, .y = {1, NAN, 3, 4}}};
  const std::string svg = to_svg(chart);
  EXPECT_EQ(count(svg, "class=\"mark"), 3u);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(svg, match, std::regex("class=\"line s0\" d=\"([^\"]*)\"")));
  EXPECT_EQ(count(match[1], "M"), 2u);
  EXPECT_EQ(count(match[1], "L"), 1u);
}

TEST(LineChart, StaysFiniteForEmptyAndDegenerateData) {
  for (const bool is_logarithmic : {false, true}) {
    LineChart chart = two_lines();
    chart.y.is_logarithmic = is_logarithmic;
    for (const std::vector<double>& y :
         {std::vector<double>{}, {0.0}, {5.0}, {NAN}, {-3.0}, {1e-300, 1e300}, {INFINITY, 1}}) {
      chart.series = {{.name = "s", .x = std::vector<double>(y.size(), 1.0), .y = y}};
      const std::string svg = to_svg(chart);
      EXPECT_THAT(svg, Not(HasSubstr("nan"))) << y.size();
      EXPECT_THAT(svg, Not(HasSubstr("inf"))) << y.size();
    }
  }
}

TEST(LineChart, NamesAreEscapedAndShortened) {
  LineChart chart = two_lines();
  chart.title = "<b>";
  chart.series[0].name = "<script>alert(1)</script>";
  const std::string svg = to_svg(chart);
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;aler"));
}

TEST(LineChart, IntegerAxesHaveWholeTicks) {
  LineChart chart = two_lines();
  chart.x.is_integer = true;
  const std::string svg = to_svg(chart);
  EXPECT_THAT(svg, Not(HasSubstr(">1.5</text>")));
  EXPECT_THAT(svg, HasSubstr(">2</text>"));
}

TEST(LineChart, ReferenceLinesCarryTheirLabels) {
  LineChart chart = two_lines();
  chart.lines = {{.at = 2, .label = "tau", .is_vertical = true}, {.at = 15, .label = "level"}};
  const std::string svg = to_svg(chart);
  EXPECT_EQ(count(svg, "class=\"reference neutral\""), 2u);
  EXPECT_THAT(svg, HasSubstr(">tau</text>"));
  EXPECT_THAT(svg, HasSubstr(">level</text>"));
}

TEST(BarChart, StackedPartsFillTheRow) {
  const BarChart chart{.id = "b",
                       .title = "B",
                       .description = "Shares.",
                       .axis_label = "%",
                       .parts = {"yes", "no"},
                       .rows = {{"row", {0.75, 0.25}, 0}},
                       .scale = 100,
                       .full = 1.0};
  const std::string svg = to_svg(chart);
  std::regex pattern("<rect x=\"([0-9.]+)\" y=\"[0-9.]+\" width=\"([0-9.]+)\" height=\"17.0\"");
  std::vector<double> x, width;
  for (std::sregex_iterator match(svg.begin(), svg.end(), pattern), end; match != end; ++match) {
    x.push_back(std::stod((*match)[1]));
    width.push_back(std::stod((*match)[2]));
  }
  ASSERT_EQ(x.size(), 2u);
  EXPECT_NEAR(x[1], x[0] + width[0], 0.11);
  EXPECT_NEAR(width[0], 3 * width[1], 0.3);
  EXPECT_THAT(svg, HasSubstr("row: yes 75.0, no 25.0."));
}

TEST(BarChart, SurvivesMissingAndEmptyValues) {
  const BarChart chart{.id = "b",
                       .title = "B",
                       .description = "",
                       .axis_label = "",
                       .parts = {"KL"},
                       .rows = {{"a", {NAN}, 0}, {"b", {}, 1}, {"c", {0.0}, 2}}};
  const std::string svg = to_svg(chart);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(to_svg(BarChart{.id = "b", .title = "", .description = "", .axis_label = "", .parts = {}}),
              HasSubstr("</svg>"));
}

}  // namespace
}  // namespace ropd::report
