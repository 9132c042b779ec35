#include "report/tables.h"

#include <gmock/gmock.h>

#include <cmath>

#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::report {
namespace {

using ::testing::HasSubstr;

class Tables : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  std::vector<RunData> runs_;

  void add(const test::FakeRun& fake) {
    const Path path = directory_ / std::to_string(runs_.size());
    test::write_fake_run(path, fake);
    runs_.push_back(read_run(fake.name + "=" + path.string()));
  }
};

TEST_F(Tables, HeadlineMarksTheBestTrainedMethodOnly) {
  for (const auto& fake : test::fake_laboratory()) add(fake);
  const Comparison comparison = compare_methods(runs_);
  const auto table = headline_table(comparison, 0);
  const std::string markdown = stats::to_markdown(table);
  EXPECT_THAT(markdown, HasSubstr("**72.6**"));  // fixed
  EXPECT_THAT(markdown, HasSubstr("| 86.1 |"));  // the teacher is a reference
  EXPECT_THAT(markdown, HasSubstr("| R-OPD | 1 |"));
  EXPECT_THAT(markdown, HasSubstr("One run each"));
  EXPECT_EQ(benchmark_table(comparison, 0).rows.size(), 4u * 6);
  EXPECT_EQ(measures_table(comparison, 0).columns.size(), 11u);
}

TEST_F(Tables, SeveralRunsShowMeanDeviationAndTau) {
  auto fake = test::fake_laboratory()[5];
  for (const uint64_t seed : {1, 2, 3}) {
    fake.seed = seed;
    fake.accuracy[4] = 60 + 2.0 * static_cast<double>(seed);
    fake.tau = seed == 3 ? 8 : 4 + seed;
    add(fake);
  }
  const Comparison comparison = compare_methods(runs_);
  const std::string text = stats::to_text(headline_table(comparison, 0));
  EXPECT_THAT(text, HasSubstr("64.0 ± 2.0"));
  EXPECT_THAT(text, HasSubstr("5, 6, 8 (6.3 ± 1.5)"));
}

TEST(ComputeOf, CountsWhatWasSampledAndWhatReplaySaved) {
  IterationRecord fresh, stored;
  fresh.source = "current";
  fresh.responses = 480;
  fresh.response_tokens = 1000;
  fresh.rollout_tokens_per_second = 250;
  fresh.seconds = {.rollout = 4, .score_student = 1, .score_teacher = 2, .update = 3, .total = 11};
  stored = fresh;
  stored.source = "initial";
  stored.rollout_tokens_per_second.reset();
  stored.seconds.rollout = 0.5;
  stored.seconds.total = 7;
  const Compute compute = compute_of({fresh, fresh, stored});
  EXPECT_EQ(compute.trajectories, 1440);
  EXPECT_EQ(compute.sampled, 960);
  EXPECT_EQ(compute.tokens_sampled, 2000);
  EXPECT_EQ(compute.tokens_trained, 3000);
  EXPECT_DOUBLE_EQ(compute.seconds_sampling, 8.5);
  EXPECT_DOUBLE_EQ(compute.seconds_scoring, 9);
  EXPECT_DOUBLE_EQ(compute.seconds_other, 2.5);
  EXPECT_DOUBLE_EQ(compute.seconds_saved, 3.5);  // 4 instead of 0.5
  EXPECT_TRUE(std::isnan(compute_of({stored}).seconds_saved));
}

TEST_F(Tables, ComputeHasARowForEveryTrainedMethod) {
  for (const auto& fake : test::fake_laboratory()) add(fake);
  const auto table = compute_table(compare_methods(runs_));
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(table.rows[0].cells[2].value, 15 * 480);
}

TEST_F(Tables, DiagnosesBecomeTables) {
  test::write_fake_diagnosis(directory_ / "d");
  const auto tables = diagnosis_tables(read_diagnosis(directory_ / "d" / "diagnosis.json"), 1);
  ASSERT_EQ(tables.size(), 6u);
  EXPECT_EQ(tables[0].id, "diagnosis-kl-2");
  EXPECT_THAT(stats::to_text(tables[1]), HasSubstr("0.3100  0.2900  0.0200"));
}

}  // namespace
}  // namespace ropd::report
