#include "lab/summary.h"

#include <gmock/gmock.h>

#include <cmath>

namespace ropd::lab {
namespace {

using ::testing::HasSubstr;

RunResult run(uint64_t seed, double at_short, double at_long, double length = 60) {
  return {.seed = seed, .accuracy = {at_short, at_long}, .standard_error = {0.01, 0.01}, .length = length};
}

// The prototype's numbers, one seed.
LabResults prototype() {
  LabResults results{.budgets = {64, 512}};
  results.methods = {{"theta_0", Role::initial_student, {run(1, 0.281, 0.303, 27)}},
                     {"teacher", Role::teacher, {run(1, 0.528, 0.861, 73)}},
                     {"current", Role::current, {run(1, 0.461, 0.661, 64)}},
                     {"initial only", Role::initial_only, {run(1, 0.420, 0.707, 102)}},
                     {"fixed 10+5", Role::fixed, {run(1, 0.468, 0.726, 80)}},
                     {"R-OPD", Role::ropd, {run(1, 0.414, 0.697, 93)}}};
  results.methods[0].runs[0].prefix_kl = 0.375;
  results.methods[2].runs[0].prefix_kl = 0.162;
  results.methods[2].runs[0].prefixes_less_likely = 0.97;
  results.methods[5].runs[0].tau = 7;
  return results;
}

const Finding& about(const std::vector<Finding>& all, const std::string& words) {
  for (const Finding& finding : all)
    if (finding.claim.find(words) != std::string::npos) return finding;
  ADD_FAILURE() << words;
  return all[0];
}

TEST(Difference, AddsTheErrorsOfBothRuns) {
  const LabResults results = prototype();
  const Difference d = difference(results.methods[4], results.methods[2], 1);
  EXPECT_NEAR(d.mean, 0.065, 1e-12);
  EXPECT_NEAR(d.standard_error, std::sqrt(2e-4), 1e-12);
  EXPECT_EQ(d.num_pairs, 1u);
}

TEST(Difference, PairsSeedsAndUsesTheirSpread) {
  const MethodResult left{"l", Role::fixed, {run(1, 0, 0.7), run(2, 0, 0.9), run(9, 0, 0.1)}};
  const MethodResult right{"r", Role::current, {run(2, 0, 0.6), run(1, 0, 0.6)}};
  const Difference d = difference(left, right, 1);
  EXPECT_EQ(d.num_pairs, 2u);
  EXPECT_NEAR(d.mean, 0.2, 1e-12);
  EXPECT_NEAR(d.standard_error, std::sqrt(0.02) / std::sqrt(2.0), 1e-12);  // SD of 0.1 and 0.3
}

TEST(Difference, WithoutCommonSeedsComparesMeans) {
  const MethodResult left{"l", Role::fixed, {run(1, 0, 0.7)}};
  const MethodResult right{"r", Role::current, {run(2, 0, 0.6)}};
  EXPECT_NEAR(difference(left, right, 1).mean, 0.1, 1e-12);
  EXPECT_EQ(difference(left, right, 1).num_pairs, 0u);
}

TEST(Findings, ThePrototypeShowsWhatItsDocumentSays) {
  const auto all = findings(prototype());
  EXPECT_EQ(about(all, "short budget").verdict, Verdict::shown);
  EXPECT_EQ(about(all, "longer responses").verdict, Verdict::shown);
  EXPECT_EQ(about(all, "less likely").verdict, Verdict::shown);
  EXPECT_EQ(about(all, "continued sampling").verdict, Verdict::shown);
  EXPECT_THAT(about(all, "continued sampling").numbers, HasSubstr("72.6 against 66.1, +6.5 ± 2.8 points"));
  EXPECT_EQ(about(all, "R-OPD").verdict, Verdict::shown);
  EXPECT_THAT(about(all, "R-OPD").numbers, HasSubstr("tau 7"));
}

TEST(Findings, WhatWasNotRunIsSaid) {
  const auto all = findings(prototype());
  EXPECT_EQ(about(all, "recent bank").verdict, Verdict::not_run);
  EXPECT_EQ(about(all, "initial-then-current").verdict, Verdict::not_run);
  EXPECT_EQ(about(all, "Query count").verdict, Verdict::not_run);
}

TEST(Findings, NoiseIsNotAFinding) {
  LabResults results = prototype();
  results.methods[5].runs[0].accuracy[1] = 0.67;  // 0.9 points above current, two standard errors are 2.8
  EXPECT_EQ(about(findings(results), "R-OPD").verdict, Verdict::not_shown);
  results.methods[5].runs[0].accuracy[1] = 0.60;
  EXPECT_EQ(about(findings(results), "R-OPD").verdict, Verdict::opposite);
}

TEST(Findings, ACrossoverNeedsBothEnds) {
  LabResults results = prototype();
  results.methods[3].runs[0].accuracy[0] = 0.47;
  EXPECT_EQ(about(findings(results), "short budget").verdict, Verdict::not_shown);
  results.methods[3].runs[0].accuracy = {0.6, 0.5};
  EXPECT_EQ(about(findings(results), "short budget").verdict, Verdict::opposite);
}

TEST(Findings, PrefixesThatStayLikelyAreTheOpposite) {
  LabResults results = prototype();
  results.methods[2].runs[0].prefixes_less_likely = 0.3;
  EXPECT_EQ(about(findings(results), "less likely").verdict, Verdict::opposite);
}

TEST(ConsoleTable, IsAligned) {
  const std::string table = console_table(prototype());
  EXPECT_THAT(table, HasSubstr("accuracy, %     64   512  length  at cap, %  tau\n"));
  EXPECT_THAT(table, HasSubstr("R-OPD         41.4  69.7      93        0.0    7\n"));
}

TEST(ConsoleTable, SeveralSeedsHaveASpread) {
  LabResults results{.budgets = {64, 512}};
  results.methods = {{"R-OPD", Role::ropd, {run(1, 0.4, 0.70), run(2, 0.4, 0.72)}}};
  results.methods[0].runs[0].tau = 3;
  const std::string table = console_table(results);
  EXPECT_THAT(table, HasSubstr("71.0 ± 1.4"));
  EXPECT_THAT(table, HasSubstr("3,none"));
}

TEST(ConsoleNote, SaysWhenNobodyBeatsTheInitialStudent) {
  LabResults results = prototype();
  EXPECT_EQ(console_note(results), "") << "current is far above";
  results.num_updates = 24;
  for (MethodResult& method : results.methods)
    if (method.role != Role::initial_student && method.role != Role::teacher)
      method.runs[0].accuracy[1] = method.role == Role::fixed ? 0.25 : 0.2;
  EXPECT_THAT(console_note(results), HasSubstr("after 24 updates no method is above the initial student"));
  EXPECT_THAT(console_note(results), HasSubstr("best: fixed 10+5, 25.0 against 30.3 at 512 tokens"));
  EXPECT_THAT(console_note(results), HasSubstr("from 27 to 80 tokens"));
}

TEST(ConsoleFindings, BeginWithTheVerdict) {
  const std::string text = console_findings(prototype());
  EXPECT_THAT(text, HasSubstr("shown      Replay of the initial bank"));
  EXPECT_THAT(text, HasSubstr("not run    Query count and resampling interact"));
  EXPECT_EQ(console_findings({}), "");
}

TEST(ResultsJson, HoldsEveryRunAndFinding) {
  const Json json = results_json(prototype());
  EXPECT_EQ(json["budgets"], Json({64, 512}));
  ASSERT_EQ(json["methods"].size(), 6u);
  EXPECT_EQ(json["methods"][5]["name"], "R-OPD");
  EXPECT_EQ(json["methods"][5]["runs"][0]["tau"], 7);
  EXPECT_EQ(json["methods"][2]["runs"][0]["tau"], nullptr);
  EXPECT_EQ(json["methods"][2]["runs"][0]["accuracy"], Json({0.461, 0.661}));
  EXPECT_EQ(json["findings"].size(), findings(prototype()).size());
}

}  // namespace
}  // namespace ropd::lab
