#include "stats/comparison.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace ropd::stats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One benchmark of four questions with four responses each, at budgets 64 and 128; accuracy is given per
// question.
EvaluationSummary evaluation(std::vector<double> at_64, std::vector<double> at_128) {
  EvaluationSummary summary{.path = "x/summary.json", .suite = "s"};
  summary.budgets = {64, 128};
  EvaluationSummary::Benchmark benchmark{.name = "a", .samples = 4};
  for (const auto& values : {at_64, at_128}) {
    auto& questions = benchmark.questions.emplace_back();
    for (const double accuracy : values)
      questions.push_back({.accuracy = accuracy, .extraction = 1, .length = 10, .responses = 4});
  }
  for (size_t q = 0; q < at_64.size(); ++q) benchmark.question_ids.push_back("q" + std::to_string(q));
  summary.benchmarks = {benchmark};
  return summary;
}

const std::vector<Method> kPair = {
    {.label = "current", .runs = {evaluation({0.25, 0.5, 0.5, 0.75}, {0.5, 0.5, 0.5, 0.5})}},
    {.label = "R-OPD", .runs = {evaluation({0.25, 0.25, 0.5, 0.5}, {1.0, 0.75, 0.75, 1.0})}}};
const BootstrapConfig kFew{.draws = 500};

TEST(Comparison, DifferencesAtEveryBudgetByHand) {
  const Question question = difference_of(kPair, 1, 0);
  EXPECT_EQ(question.title, "R-OPD - current");
  const std::vector<Measure> measures = {parse_measure("accuracy"), parse_measure("pass@n")};
  const auto curves = answer(kPair, std::span(&question, 1), measures, common_budgets(kPair), kFew);
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_THAT(curves[0].budgets, ElementsAre(64, 128));
  EXPECT_NEAR(curves[0].effects[0].mean.interval.estimate, -0.125, 1e-12);
  EXPECT_NEAR(curves[0].effects[1].mean.interval.estimate, 0.375, 1e-12);
  EXPECT_NEAR(curves[1].effects[1].mean.interval.estimate, 0.0, 1e-12);  // all are passed by both
  EXPECT_THAT(curves[0].num_runs, ElementsAre(1, 1));
  EXPECT_FALSE(curves[0].effects[0].mean.includes_runs);
}

TEST(Comparison, InteractionByHand) {
  std::vector<Method> four = {kPair[1], kPair[0], kPair[0], kPair[1]};
  const Question question = interaction_of(four, 0, 1, 2, 3);
  EXPECT_EQ(question.title, "(R-OPD - current) - (current - R-OPD)");
  const Measure measures[] = {parse_measure("accuracy"), parse_measure("pass@2")};
  const auto curves = answer(four, std::span(&question, 1), measures, common_budgets(four), kFew);
  EXPECT_NEAR(curves[0].effects[1].mean.interval.estimate, 0.75, 1e-12);
  // pass@2 of c correct among 4: 1 -> 1/2, 2 -> 5/6, 3 and 4 -> 1. R-OPD at 64: (1/2 + 1/2 + 5/6 + 5/6) / 4,
  // current (1/2 + 5/6 + 5/6 + 1) / 4; twice the difference.
  EXPECT_NEAR(curves[1].effects[0].mean.interval.estimate, 2 * ((8.0 / 3) - (19.0 / 6)) / 4, 1e-12);
}

TEST(Comparison, RunsOfKnownOrdersArePairedWhateverTheirPlace) {
  std::vector<Method> methods = kPair;
  methods[0].runs = {kPair[0].runs[0], kPair[1].runs[0]};
  methods[0].orders = {"order 1", "order 2"};
  methods[1].runs = {kPair[1].runs[0], kPair[0].runs[0]};
  methods[1].orders = {"order 2", "order 1"};
  align_orders(methods);
  EXPECT_THAT(methods[1].orders, ElementsAre("order 1", "order 2"));
  const Question question = difference_of(methods, 1, 0);
  EXPECT_EQ(pairing_of(methods, question), Pairing::by_order);
  const Measure accuracy = parse_measure("accuracy");
  const auto curves =
      answer(methods, std::span(&question, 1), std::span(&accuracy, 1), common_budgets(methods), kFew);
  // Order by order the two methods are the same evaluation.
  EXPECT_NEAR(curves[0].effects[1].mean.standard_error, 0, 1e-12);
  EXPECT_EQ(curves[0].over_runs[1].count, 2u);
}

TEST(Comparison, OtherOrdersAreNotPairedAndUnknownOnesByPosition) {
  std::vector<Method> methods = kPair;
  for (Method& method : methods) method.runs.push_back(method.runs[0]);
  const Question question = difference_of(methods, 1, 0);
  EXPECT_EQ(pairing_of(methods, question), Pairing::by_position);
  methods[0].orders = {"order 1", "order 2"};
  methods[1].orders = {"order 1", "order 3"};
  align_orders(methods);
  EXPECT_EQ(pairing_of(methods, question), Pairing::none);
  methods[1].runs.pop_back();
  EXPECT_EQ(pairing_of(methods, question), Pairing::none);
}

TEST(Comparison, BudgetsThatOnlySomeHaveAreLeftOut) {
  std::vector<Method> methods = kPair;
  methods[1].runs[0].budgets = {128, 256};
  EXPECT_THAT(common_budgets(methods), ElementsAre(128));
  methods[1].runs[0].budgets = {256, 512};
  try {
    common_budgets(methods);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("in place of the present ones"));
  }
}

TEST(Comparison, TablesSayHowManyRunsAndComparisons) {
  std::vector<Method> methods = kPair;
  methods[1].runs = {kPair[1].runs[0], kPair[1].runs[0], kPair[0].runs[0]};
  const Measure accuracy = parse_measure("accuracy");
  const auto results = to_text(method_table(methods, accuracy, common_budgets(methods)));
  EXPECT_THAT(results, HasSubstr("current     1"));
  // 0.875, 0.875, 0.5 at 128: mean 75, sample SD sqrt((2 * 12.5^2 + 25^2) / 2) = 21.65
  EXPECT_THAT(results, HasSubstr("75.00 ± 21.65"));
  const Question question = difference_of(methods, 1, 0);
  const auto curves =
      answer(methods, std::span(&question, 1), std::span(&accuracy, 1), common_budgets(methods), kFew);
  const auto differences = to_text(curve_table(curves, kFew));
  EXPECT_THAT(differences, HasSubstr("3 and 1 runs, not paired"));
  EXPECT_THAT(differences, HasSubstr("2 comparisons in this table: 0.1 would exclude zero by chance alone"));
  EXPECT_THAT(to_text(benchmark_table(curves, 128, kFew)), HasSubstr("mean"));
  EXPECT_THAT(to_text(measure_table(curves, 128, kFew)), HasSubstr("accuracy, %"));
  EXPECT_THAT(to_text(curve_table(answer(kPair, std::span(&question, 1), std::span(&accuracy, 1),
                                         common_budgets(kPair), kFew),
                                  kFew)),
              HasSubstr("another run may differ by more"));
}

TEST(Comparison, MarksAreForIntervalsAndForTheWholeTable) {
  const auto effect = [](double low, double high, double p) {
    return Effect{.interval = {(low + high) / 2, low, high}, .p = p};
  };
  const Effect effects[] = {effect(0.1, 0.2, 0.001), effect(0.1, 0.4, 0.03), effect(-0.1, 0.4, 0.3)};
  EXPECT_THAT(significance_marks(effects, 0.95), ElementsAre("**", "*", ""));
}

TEST(Comparison, BudgetsAreNamedInThousands) {
  EXPECT_EQ(budget_name(512), "512");
  EXPECT_EQ(budget_name(32768), "32K");
}

}  // namespace
}  // namespace ropd::stats
