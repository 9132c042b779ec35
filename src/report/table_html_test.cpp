#include "report/table_html.h"

#include <gmock/gmock.h>

#include <cmath>

namespace ropd::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TableHtml, ShowsNumbersIntervalsAndKeys) {
  stats::Table table{.id = "t", .caption = "Accuracy, %", .columns = {"method", "64"}};
  table.rows.push_back({.cells = {stats::text_cell("R-OPD"),
                                  {.value = 1.25,
                                   .interval = stats::Interval{1.25, -0.5, 3.0},
                                   .decimals = 2,
                                   .is_signed = true,
                                   .mark = "*"}}});
  table.rows.push_back(
      {.cells = {stats::text_cell("teacher"), {.value = 80.0, .deviation = 0.7, .is_best = true}},
       .is_reference = true});
  table.rows.push_back({.cells = {stats::text_cell("none"), stats::number_cell(NAN, 1)}});
  const std::string html = table_html(table, {{"R-OPD", 3}});
  EXPECT_THAT(html, HasSubstr("<span class=\"key k3\"></span>R-OPD</th><td>+1.25 <span class=\"sd\">−0.50 to "
                              "3.00</span>*</td>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"best\">80.0</span> <span class=\"sd\">± 0.7</span>"));
  EXPECT_THAT(html, HasSubstr("<tr class=\"reference\">"));
  EXPECT_THAT(html, HasSubstr("<td>–</td>"));
  EXPECT_THAT(html, HasSubstr("\\toprule"));  // the LaTeX of the same numbers travels with the page
}

TEST(TableHtml, NamesAreEscaped) {
  stats::Table table{.id = "t", .caption = "<b>", .columns = {"<i>"}, .notes = {"<u>"}};
  table.rows.push_back({.cells = {stats::text_cell("<script>alert(1)</script>")}});
  const std::string html = table_html(table);
  for (const char* tag : {"<b>", "<i>", "<u>", "<script"}) EXPECT_THAT(html, Not(HasSubstr(tag)));
}

}  // namespace
}  // namespace ropd::report
