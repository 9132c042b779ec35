#include "report/figures.h"

#include <gmock/gmock.h>

#include <set>

#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::report {
namespace {

class Laboratory : public ::testing::Test {
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

TEST_F(Laboratory, HasEveryFigureOnceWithACaption) {
  add_all();
  const auto comparison = compare_methods(runs_);
  std::set<std::string> ids;
  for (const FigureGroup& group : make_figures(comparison))
    for (const Figure& figure : group.figures) {
      EXPECT_FALSE(figure.caption.empty());
      EXPECT_TRUE(ids.insert(std::visit([](const auto& chart) { return chart.id; }, figure.chart)).second);
    }
  for (const char* id :
       {"accuracy-by-budget", "accuracy-against-length", "response-categories", "response-length",
        "truncation", "training-kl", "trigger-ratio", "trigger-1", "prefix-kl", "prefix-likelihood"})
    EXPECT_TRUE(ids.count(id)) << id;
}

TEST_F(Laboratory, RunsThatShareTheirBeginningShareATriggerChart) {
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

TEST_F(Laboratory, SeedsHaveTriggerChartsOfTheirOwn) {
  test::FakeRun fake = test::fake_laboratory()[5];
  add(fake);
  fake.seed = 2;
  add(fake);
  const auto comparison = compare_methods(runs_);
  const auto groups = make_figures(comparison);
  ASSERT_TRUE(line_chart(groups, "trigger-2"));
  EXPECT_EQ(line_chart(groups, "trigger-2")->title, "D and V: R-OPD 2");
}

TEST_F(Laboratory, ARunWithoutEvaluationHasTrainingFiguresOnly) {
  add(test::fake_laboratory()[2]);
  runs_[0].evaluation.reset();
  runs_[0].prefixes.reset();
  const auto comparison = compare_methods(runs_);
  const auto groups = make_figures(comparison);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].heading, "Training");
  EXPECT_EQ(groups[1].heading, "The trigger");
}

TEST(BudgetName, UsesKForMultiplesOf1024) {
  EXPECT_EQ(budget_name(512), "512");
  EXPECT_EQ(budget_name(4096), "4K");
  EXPECT_EQ(budget_name(1500), "1500");
}

}  // namespace
}  // namespace ropd::report
