#include "stats/table.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::stats {
namespace {

using ::testing::HasSubstr;

Table small_table() {
  Table table{.id = "accuracy", .caption = "Accuracy, %", .columns = {"method", "64", "change"}};
  table.rows.push_back(
      {.cells = {text_cell("θ0"), number_cell(36.25, 1), text_cell("")}, .is_reference = true});
  table.rows.push_back(
      {.cells = {text_cell("R-OPD"),
                 {.value = 37.5, .deviation = 2.25, .is_best = true},
                 {.value = -1.25, .interval = Interval{-1.25, -2.5, 0.04}, .is_signed = true, .mark = "*"}}});
  table.notes = {"3 runs"};
  return table;
}

TEST(Table, TextAlignsLabelsLeftAndNumbersRight) {
  EXPECT_EQ(to_text(small_table()),
            "Accuracy, %\n"
            "method          64              change\n"
            "θ0            36.2\n"
            "R-OPD   37.5 ± 2.2  -1.2 [-2.5, +0.0]*\n"
            "  3 runs\n");
}

TEST(Table, MarkdownMarksTheBestAndEscapesPipes) {
  Table table = small_table();
  table.rows[0].cells[0].text = "a|b*";
  const std::string text = to_markdown(table);
  EXPECT_THAT(text, HasSubstr("| method | 64 | change |\n|---|---:|---:|\n"));
  EXPECT_THAT(text, HasSubstr("| a\\|b\\* | 36.2 |"));
  EXPECT_THAT(text, HasSubstr("| **37.5 ± 2.2** |"));
}

TEST(Table, LatexHasBooktabsRulesAndEscapesItsOwnSigns) {
  Table table = small_table();
  table.rows[1].cells[0].text = "50%_{x}\\input{y}";
  const std::string text = to_latex(table);
  EXPECT_THAT(text, HasSubstr("\\begin{tabular}{lrr}\n\\toprule\nmethod & 64 & change \\\\\n\\midrule\n"));
  EXPECT_THAT(text, HasSubstr("$\\theta$0 & 36.2 &  \\\\\n\\midrule\n"));
  EXPECT_THAT(text, HasSubstr("50\\%\\_\\{x\\}\\textbackslash{}input\\{y\\} & \\textbf{37.5 $\\pm$ 2.2} & "
                              "$-$1.2 [$-$2.5, +0.0]* \\\\\n\\bottomrule"));
}

TEST(Table, CsvHoldsWhatTheOthersRound) {
  EXPECT_EQ(to_csv(small_table()),
            "\"method\",\"64\",\"64 SD\",\"change\",\"change low\",\"change high\"\n"
            "\"θ0\",36.25,,\"\",,\n"
            "\"R-OPD\",37.5,2.25,-1.25,-2.5,0.040000000000000001\n");
}

TEST(Table, ANameIsNeverAFormulaNorANewLine) {
  EXPECT_EQ(csv_field("=1+2"), "\" =1+2\"");
  EXPECT_EQ(csv_field("a\"b\nc"), "\"a\"\"b c\"");
}

TEST(Table, AMissingNumberIsADash) {
  EXPECT_EQ(cell_text(number_cell(NAN, 1)), "-");
  EXPECT_EQ(cell_text(number_cell(-0.01, 1)), "0.0");
  EXPECT_EQ(csv_number(NAN), "");
}

TEST(Table, FourFilesAreWritten) {
  const test::TemporaryDirectory directory;
  write_table_files(directory / "tables", small_table());
  for (const char* end : {"txt", "md", "tex", "csv"})
    EXPECT_TRUE(std::filesystem::exists(directory / "tables" / (std::string("accuracy.") + end))) << end;
  EXPECT_EQ(render(small_table(), parse_table_format("latex")), to_latex(small_table()));
  EXPECT_THROW(parse_table_format("word"), Error);
}

}  // namespace
}  // namespace ropd::stats
