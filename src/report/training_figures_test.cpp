#include <gmock/gmock.h>

#include "report/figures.h"
#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::report {
namespace {

class TrainingFigures : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  std::vector<RunData> runs_;

  void add(const test::FakeRun& fake) {
    const Path path = directory_ / std::to_string(runs_.size());
    test::write_fake_run(path, fake);
    runs_.push_back(read_run(fake.name + "=" + path.string()));
  }
  void add_all() {
    for (const auto& fake : test::fake_laboratory()) add(fake);
  }
  const LineChart* line_chart(const std::vector<FigureGroup>& groups, const std::string& id) {
    for (const FigureGroup& group : groups)
      for (const Figure& figure : group.figures)
        if (const auto* chart = std::get_if<LineChart>(&figure.chart); chart && chart->id == id) return chart;
    return nullptr;
  }
};

TEST_F(TrainingFigures, RunsThatShareTheirBeginningShareATriggerChart) {
  add_all();  // current, fixed and R-OPD have the same first iterations
  const auto comparison = compare_methods(runs_);
  const auto groups = make_figures(comparison);
  const LineChart* ratio = line_chart(groups, "trigger-ratio");
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->series.size(), 1u);
  EXPECT_EQ(ratio->series[0].x.size(), 14u);  // the longest of the family
  ASSERT_EQ(ratio->lines.size(), 2u);
  EXPECT_EQ(ratio->lines[0].at, 1.0);  // E[D] = V
  EXPECT_EQ(ratio->lines[1].at, 7.0);
  EXPECT_EQ(ratio->lines[1].label, "τ = 7 (R-OPD)");
  EXPECT_FALSE(line_chart(groups, "trigger-2"));
}

TEST_F(TrainingFigures, SeedsHaveTriggerChartsOfTheirOwn) {
  test::FakeRun fake = test::fake_laboratory()[5];
  add(fake);
  fake.seed = 2;
  add(fake);
  const auto comparison = compare_methods(runs_);
  const auto groups = make_figures(comparison);
  ASSERT_TRUE(line_chart(groups, "trigger-2"));
  EXPECT_EQ(line_chart(groups, "trigger-2")->title, "D and V: R-OPD 2");
}

TEST_F(TrainingFigures, WhatWasNotRecordedIsLeftOut) {
  add(test::fake_laboratory()[2]);
  for (IterationRecord& record : runs_[0].iterations) {
    record.distillation.teacher_mass = 0;
    record.truncated = 0;
  }
  const auto comparison = compare_methods(runs_);
  const std::vector<FigureGroup> groups = {training_figures(comparison)};
  EXPECT_FALSE(line_chart(groups, "teacher-mass"));
  EXPECT_TRUE(line_chart(groups, "student-mass"));
  EXPECT_TRUE(line_chart(groups, "truncation"));  // none at all is worth knowing
  EXPECT_EQ(line_chart(groups, "training-loss")->series[0].y[0], 0.29);
}

}  // namespace
}  // namespace ropd::report
