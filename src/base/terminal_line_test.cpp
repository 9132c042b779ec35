#include "base/terminal_line.h"

#include <gtest/gtest.h>

#include <vector>

namespace ropd {
namespace {

TEST(ColumnsOf, CountsWhatATerminalDraws) {
  EXPECT_EQ(columns_of("abc"), 3u);
  EXPECT_EQ(columns_of("größer…"), 7u);
  EXPECT_EQ(columns_of("数学"), 4u);
  EXPECT_EQ(columns_of("e\u0301"), 1u);
  EXPECT_EQ(columns_of("🙂"), 2u);
}

TEST(CutToColumns, NeverExceedsTheWidth) {
  EXPECT_EQ(cut_to_columns("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to_columns("abcdef", 5), "abcd…");
  EXPECT_EQ(cut_to_columns("数学数学", 6), "数学…");
  EXPECT_EQ(cut_to_columns("abc", 1), "…");
  EXPECT_EQ(cut_to_columns("abc", 0), "");
  for (size_t columns = 0; columns < 12; ++columns)
    EXPECT_LE(columns_of(cut_to_columns("a数b学c数d", columns)), columns);
}

TEST(FitLine, LeavesOutTheLeastImportantParts) {
  const std::vector<LinePart> parts = {{"name", 2}, {"7/15", 0}, {"rollouts", 1}, {"", 0}, {"12:03 left", 0}};
  EXPECT_EQ(fit_line(parts, std::nullopt), "name  7/15  rollouts  12:03 left");
  EXPECT_EQ(fit_line(parts, 32), "name  7/15  rollouts  12:03 left");
  EXPECT_EQ(fit_line(parts, 31), "name 7/15 rollouts 12:03 left");
  EXPECT_EQ(fit_line(parts, 28), "7/15  rollouts  12:03 left");
  EXPECT_EQ(fit_line(parts, 20), "7/15  12:03 left");
  EXPECT_EQ(fit_line(parts, 15), "7/15 12:03 left");
  EXPECT_EQ(fit_line(parts, 10), "7/15 12:0…");
}

TEST(FitLine, IsNeverWiderThanAsked) {
  const std::vector<LinePart> parts = {
      {"a long name of a run", 3}, {"7/15", 0}, {"rollouts", 1}, {"312/480", 0}};
  for (size_t columns = 0; columns <= 200; ++columns)
    EXPECT_LE(columns_of(fit_line(parts, columns)), columns);
}

}  // namespace
}  // namespace ropd
