#include "report/chart_files.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "support/test_data.h"

namespace ropd::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LineChart line_chart(const std::string& name) {
  return {.id = "lines",
          .title = "It's a \"title\"",
          .description = "d",
          .x = {.label = "x", .ticks = {{1, "one"}, {2, "two"}}},
          .y = {.label = "y"},
          .series = {{.name = name, .x = {1, 2}, .y = {0.1, NAN}, .low = {0.05, NAN}, .high = {0.15, NAN}}},
          .lines = {{.at = 1, .label = name, .is_vertical = true}}};
}

BarChart bar_chart(const std::string& name) {
  return {.id = "bars",
          .title = "Bars",
          .description = "d",
          .axis_label = "%",
          .parts = {"yes", name},
          .rows = {{name, {0.6, 0.4}, 0}, {"other", {0.2, 0.8}, 1}},
          .scale = 100,
          .full = 1.0};
}

// A name that would be a command, a formula or markup wherever it is not taken as data.
const std::string kHostile = "=1+`touch /tmp/ropd-pwned`'\n\"; system 'true' <script>";

TEST(ChartFiles, CsvHoldsEveryPointExactly) {
  EXPECT_EQ(to_csv(line_chart("a, b")),
            "series_index,series,x,y,low,high\n"
            "0,\"a, b\",1,0.10000000000000001,0.050000000000000003,0.14999999999999999\n"
            "0,\"a, b\",2,,,\n");
  EXPECT_EQ(to_csv(bar_chart("no")),
            "row_index,row,part_index,part,value\n"
            "0,\"no\",0,\"yes\",0.59999999999999998\n0,\"no\",1,\"no\",0.40000000000000002\n"
            "1,\"other\",0,\"yes\",0.20000000000000001\n1,\"other\",1,\"no\",0.80000000000000004\n");
}

TEST(ChartFiles, HostileNamesStayInsideQuotes) {
  const std::string csv = to_csv(line_chart(kHostile));
  EXPECT_THAT(csv, HasSubstr("\" =1+"));  // no formula
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  const std::string script = to_gnuplot(line_chart(kHostile));
  EXPECT_THAT(script, HasSubstr("title '=1+`touch /tmp/ropd-pwned`'' \"; system ''true'' <script>'"));
}

TEST(ChartFiles, ASavedDrawingCarriesItsStyle) {
  const test::TemporaryDirectory directory;
  write_chart_files(directory / "figures", line_chart("a"));
  const std::string svg = read_file(directory / "figures/lines.svg");
  EXPECT_THAT(svg, HasSubstr("<style>"));
  EXPECT_THAT(svg, HasSubstr("--s0:"));
  EXPECT_TRUE(std::filesystem::exists(directory / "figures/lines.csv"));
  EXPECT_TRUE(std::filesystem::exists(directory / "figures/lines.gp"));
}

TEST(ChartFiles, GnuplotDrawsTheScripts) {
  if (std::system("command -v gnuplot > /dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const test::TemporaryDirectory directory;
  write_chart_files(directory.path(), line_chart(kHostile));
  write_chart_files(directory.path(), bar_chart(kHostile));
  for (const std::string id : {"lines", "bars"}) {
    const std::string command = "cd " + directory.path().string() + " && gnuplot " + id + ".gp > log 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << read_file(directory / "log");
    EXPECT_GT(std::filesystem::file_size(directory / (id + ".gnuplot.svg")), 1000u);
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/ropd-pwned"));
}

}  // namespace
}  // namespace ropd::report
