#include "report/findings.h"

#include <gmock/gmock.h>

#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::report {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Findings : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  std::vector<RunData> runs_;
  const stats::BootstrapConfig config_{.draws = 400};

  void add(const test::FakeRun& fake) {
    const Path path = directory_ / std::to_string(runs_.size());
    test::write_fake_run(path, fake);
    runs_.push_back(read_run(fake.name + "=" + path.string()));
  }
  std::vector<std::string> sentences() {
    const Comparison comparison = compare_methods(runs_);
    std::vector<Analysis> analyses;
    for (const ResultSet& set : comparison.results) analyses.push_back(analyse(comparison, set, config_));
    return findings(comparison, analyses, config_);
  }
};

TEST_F(Findings, SayWhoIsBetterAndHowSure) {
  for (const auto& fake : test::fake_laboratory()) add(fake);
  const auto all = sentences();
  EXPECT_THAT(
      all,
      Contains(HasSubstr("At 512 tokens fixed 10+5 is right in 72.6 %, 6.5 points more than current (95 %")));
  EXPECT_THAT(
      all,
      Contains(HasSubstr("At 64 tokens it is the other way round: 4.7 points less than current")));  // R-OPD
  EXPECT_THAT(all, Contains(HasSubstr("current is right in 66.1 %, 35.8 points more than initial student")));
  EXPECT_THAT(all, Contains(HasSubstr("1 run of each method: 95 % intervals over questions only")));
  EXPECT_THAT(all, Contains(HasSubstr("comparisons were made for these sentences")));
  EXPECT_THAT(all, Contains(HasSubstr("The trigger of R-OPD was set at iteration 7")));
  EXPECT_THAT(all, Contains(HasSubstr("R-OPD sampled 47 % of the trajectories")));
  EXPECT_THAT(all, Contains(HasSubstr("R-OPD 0.109")));
}

TEST_F(Findings, ATriggerThatWasNotSetHasNoIteration) {
  for (auto fake : test::fake_laboratory()) {
    if (fake.tau != 0) fake.tau = fake.iterations + 1;
    add(fake);
  }
  EXPECT_THAT(sentences(), Contains(HasSubstr("The trigger of R-OPD was not set")));
}

TEST_F(Findings, ADifferenceThatMayBeChanceSaysSo) {
  auto fake = test::fake_laboratory()[2];
  add(fake);
  fake.name = "twin";
  fake.seed = 5;
  fake.accuracy[4] += 0.05;
  add(fake);
  EXPECT_THAT(sentences(), Contains(HasSubstr("which may be chance")));
}

TEST_F(Findings, RunsOfOneOrderArePaired) {
  for (const size_t i : {2u, 4u})
    for (const uint64_t seed : {1, 2, 3}) {
      auto fake = test::fake_laboratory()[i];
      fake.seed = seed;
      add(fake);
    }
  EXPECT_THAT(sentences(),
              Contains(HasSubstr("3 runs, paired by data order: 95 % intervals over questions and runs.")));
}

TEST_F(Findings, SettingsThatDifferAreWarnings) {
  add(test::fake_laboratory()[2]);
  add(test::fake_laboratory()[4]);
  runs_[1].evaluations[0].summary.settings[0].second = "0.2";
  const Comparison comparison = compare_methods(runs_);
  EXPECT_THAT(analyse(comparison, comparison.results[0], config_).warnings,
              Contains(HasSubstr("temperature is")));
}

TEST_F(Findings, OneRunAloneHasNothingToCompare) {
  add(test::fake_laboratory()[2]);
  EXPECT_THAT(sentences(), Not(Contains(HasSubstr("points more"))));
}

}  // namespace
}  // namespace ropd::report
