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
       {"accuracy-by-budget", "accuracy-against-length", "length-by-budget", "accuracy-by-length",
        "pass-at-k", "response-categories", "benchmark-4", "categories-1", "training-loss", "gradient-norm",
        "response-length", "truncation", "training-kl", "student-mass", "teacher-mass", "trigger-ratio",
        "trigger-1", "prefix-kl", "prefix-likelihood"})
    EXPECT_TRUE(ids.count(id)) << id;
}

TEST_F(Laboratory, BudgetFiguresOfSharesHaveAxesOfShares) {
  add_all();
  const auto groups = make_figures(compare_methods(runs_));
  EXPECT_TRUE(line_chart(groups, "accuracy-by-budget")->y.is_share);
  EXPECT_FALSE(line_chart(groups, "length-by-budget")->y.is_share);
}

TEST_F(Laboratory, AccuracyOverTrainingComesFromEvaluationsOnTheWay) {
  add(test::fake_laboratory()[2]);
  auto fake = test::fake_laboratory()[2];
  for (const int step : {20, 40}) {
    fake.accuracy[4] = step;
    test::write_fake_evaluation(directory_ / "0" / "eval" / ("step-000" + std::to_string(step)), fake);
  }
  runs_[0] = read_run("current=" + (directory_ / "0").string());
  const auto comparison = compare_methods(runs_);
  const auto groups = make_figures(comparison);
  const LineChart* chart = line_chart(groups, "accuracy-over-training");
  ASSERT_TRUE(chart);
  EXPECT_THAT(chart->series[0].x, ::testing::ElementsAre(20, 40));
  EXPECT_THAT(chart->series[0].y,
              ::testing::ElementsAre(::testing::DoubleNear(20, 1e-9), ::testing::DoubleNear(40, 1e-9)));
}

TEST_F(Laboratory, DifferencesAreDrawnWithTheirIntervals) {
  stats::EffectCurve curve{.title = "a - b", .budgets = {64, 128}};
  for (const double value : {-0.01, 0.02}) {
    stats::SuiteEffect effect;
    effect.mean.interval = {value, value - 0.01, value + 0.01};
    curve.effects.push_back(effect);
  }
  const LineChart chart = difference_chart(std::span(&curve, 1));
  EXPECT_EQ(chart.id, "difference-accuracy");
  EXPECT_NEAR(chart.series[0].y[1], 2, 1e-12);
  EXPECT_NEAR(chart.series[0].low[0], -2, 1e-12);
  EXPECT_EQ(chart.lines[0].at, 0);
}

TEST_F(Laboratory, ARunWithoutEvaluationHasTrainingFiguresOnly) {
  add(test::fake_laboratory()[2]);
  runs_[0].evaluations.clear();
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
