#include <gmock/gmock.h>

#include "report/figures.h"
#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::report {
namespace {

TEST(DiagnosisFigures, HaveABarForEveryStudentAndACurveForEveryChange) {
  const test::TemporaryDirectory directory;
  test::write_fake_diagnosis(directory / "d");
  const std::vector<RunData> runs = {read_run((directory / "d").string())};
  const Comparison comparison = compare_methods(runs);
  const auto groups = diagnosis_figures(comparison);
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups[0].figures.size(), 3u);  // KL on two sources, likelihood on one
  const auto& bars = std::get<BarChart>(groups[0].figures[0].chart);
  ASSERT_EQ(bars.rows.size(), 2u);
  EXPECT_EQ(bars.rows[1].values[0], 0.14);
  const auto& lines = std::get<LineChart>(groups[0].figures[2].chart);
  EXPECT_EQ(lines.series[0].x[0], -3.0);
  EXPECT_EQ(lines.series[0].y[1], 60.0);
}

}  // namespace
}  // namespace ropd::report
