#include "study/tables.h"

#include <gmock/gmock.h>

namespace ropd::study {
namespace {

TEST(Cells, ShowMeanAndDeviationOverRuns) {
  EXPECT_EQ(stats::cell_text(spread_cell({1, 3}, 2)), "2.00 ± 1.41");
  EXPECT_EQ(stats::cell_text(spread_cell({1}, 1)), "1.0") << "one run has no deviation";
  EXPECT_EQ(stats::cell_text(spread_cell({}, 1)), "-");
}

TEST(Cells, OfThePaperMayBeMissing) {
  const std::vector<std::optional<double>> paper = {26.41, std::nullopt};
  EXPECT_EQ(stats::cell_text(paper_cell(paper, 0, 2)), "26.41");
  EXPECT_EQ(stats::cell_text(paper_cell(paper, 1, 2)), "-");
  EXPECT_EQ(stats::cell_text(paper_cell(paper, 2, 2)), "-");
}

}  // namespace
}  // namespace ropd::study
