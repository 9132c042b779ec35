#include "report/run_data.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "support/run_fixture.h"
#include "support/test_data.h"

namespace ropd::report {
namespace {

using ::testing::HasSubstr;

class RunDirectory : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  Path run_ = directory_ / "my-run";

  void write(const std::string& name, const std::string& text) { test::write_text(run_ / name, text); }
  std::string error(const std::string& argument) {
    try {
      read_run(argument);
    } catch (const Error& failure) {
      return failure.what();
    }
    return "";
  }
};

TEST_F(RunDirectory, IsReadInFull) {
  test::FakeRun fake = test::fake_laboratory()[5];
  test::write_fake_run(run_, fake);
  const RunData run = read_run(run_.string());
  EXPECT_EQ(run.label, "my-run");
  EXPECT_EQ(run.iterations.size(), 15u);
  EXPECT_EQ(run.tau(), 7u);
  EXPECT_EQ(run.setting("train.learning_rate"), "7e-05");
  EXPECT_EQ(run.setting("train.betas"), "[0.9, 0.999]");
  EXPECT_EQ(run.setting("curriculum.stages[0].until"), "trigger");
  EXPECT_EQ(run.setting("absent.key"), "");
  ASSERT_EQ(run.evaluations.size(), 1u);
  EXPECT_EQ(run.evaluations[0].name, "final");
  EXPECT_FALSE(run.evaluations[0].step);
  const stats::EvaluationSummary& summary = run.evaluations[0].summary;
  ASSERT_EQ(summary.budgets.size(), 5u);
  EXPECT_EQ(summary.budgets[4], 512u);
  EXPECT_NEAR(stats::suite_mean(summary.values({}, 512)), 0.697, 1e-12);
  EXPECT_EQ(summary.benchmarks.size(), 4u);
  EXPECT_EQ(run.order(), "order 1, seed 1");
  ASSERT_TRUE(run.prefixes);
  EXPECT_NEAR(*run.prefixes->kl, 0.109, 1e-12);
  EXPECT_EQ(run.prefixes->cumulative.size(), 61u);
  EXPECT_EQ(run.evaluations[0].responses, run_ / "eval/final/responses.jsonl");
}

TEST_F(RunDirectory, ANameMayBeGiven) {
  test::write_fake_run(run_, test::fake_laboratory()[0]);
  EXPECT_EQ(read_run("θ0=" + run_.string()).label, "θ0");
  EXPECT_EQ(read_run(run_.string() + "/").label, "my-run");
}

TEST_F(RunDirectory, AllEvaluationsAreRead) {
  const test::FakeRun fake = test::fake_laboratory()[2];
  for (const char* name : {"step-00060", "step-00020", "cold"})
    test::write_fake_evaluation(run_ / "eval" / name, fake);
  const RunData run = read_run(run_.string());
  ASSERT_EQ(run.evaluations.size(), 3u);
  EXPECT_EQ(run.evaluations[0].name, "cold");
  EXPECT_EQ(run.evaluations[1].step, 20u);
  EXPECT_EQ(run.evaluations[2].step, 60u);
}

TEST_F(RunDirectory, AnEvaluationOrADiagnosisAloneIsEnough) {
  test::write_fake_evaluation(run_, test::fake_laboratory()[0]);
  EXPECT_EQ(read_run(run_.string()).evaluations.size(), 1u);
  const Path other = directory_ / "diagnosis";
  test::write_fake_diagnosis(other);
  ASSERT_TRUE(read_run(other.string()).diagnosis);
}

TEST_F(RunDirectory, AFolderOfRunsStandsForAllOfThem) {
  const auto lab = test::fake_laboratory();
  for (const char* seed : {"seed-1", "seed-2"})
    for (const size_t i : {2u, 5u}) test::write_fake_run(directory_ / "lab" / seed / lab[i].name, lab[i]);
  test::write_fake_evaluation(directory_ / "lab" / "theta_0" / "eval" / "lab", lab[0]);
  const auto arguments = expand_arguments({(directory_ / "lab").string(), "x=/nowhere"});
  ASSERT_EQ(arguments.size(), 6u);
  EXPECT_EQ(arguments[0], (directory_ / "lab/seed-1/R-OPD").string());
  EXPECT_EQ(arguments[4], (directory_ / "lab/theta_0").string());
  EXPECT_EQ(arguments[5], "x=/nowhere");
}

TEST_F(RunDirectory, RolloutsOfReplayAreNoSamplesOfThePolicy) {
  test::FakeRun fake = test::fake_laboratory()[4];  // ten current iterations, five of replay
  test::write_fake_run(run_, fake);
  for (const std::string name : {"0001", "0010", "0015"}) write("rollouts/iter-" + name + ".jsonl", "");
  RunData run = read_run(run_.string());
  EXPECT_EQ(run.first_rollouts, run_ / "rollouts/iter-0001.jsonl");
  EXPECT_EQ(run.last_rollouts, run_ / "rollouts/iter-0010.jsonl");
  write("banks/initial.jsonl", "");
  EXPECT_EQ(read_run(run_.string()).first_rollouts, run_ / "banks/initial.jsonl");
}

TEST_F(RunDirectory, StepsOfFineTuningAreItsTrainingCurve) {
  test::write_text(
      run_ / "metrics.jsonl",
      "{\"grad_norm\":2.5,\"loss\":11.25,\"loss_tokens\":8,\"lr\":0.001,\"step\":1,\"tokens\":25}\n"
      "{\"grad_norm\":1.5,\"loss\":9.5,\"loss_tokens\":10,\"lr\":0.0009,\"step\":2,\"tokens\":32}\n");
  const RunData run = read_run(run_.string());
  ASSERT_EQ(run.iterations.size(), 2u);
  EXPECT_EQ(run.iterations[1].iteration, 2u);
  EXPECT_EQ(run.iterations[1].loss, 9.5);
  EXPECT_EQ(run.iterations[0].grad_norm, 2.5);
  test::write_text(run_ / "metrics.jsonl", "{\"loss\":1}\n");
  EXPECT_THAT(error(run_.string()), HasSubstr("metrics.jsonl:1: \"step\" is missing"));
  for (const char* step : {"1e300", "-5"}) {
    test::write_text(run_ / "metrics.jsonl",
                     "{\"loss\":1,\"grad_norm\":1,\"step\":" + std::string(step) + "}\n");
    EXPECT_THAT(error(run_.string()), HasSubstr("expected the number of a step"));
  }
}

TEST_F(RunDirectory, WhatIsNoRunIsRefused) {
  EXPECT_THAT(error("/nowhere/at/all"), HasSubstr("no such run directory"));
  std::filesystem::create_directories(run_);
  EXPECT_THAT(error(run_.string()), HasSubstr("not a run directory"));
}

TEST_F(RunDirectory, BrokenFilesAreNamed) {
  write("config.yaml", "a: [1, 2\nb: }");
  EXPECT_THAT(error(run_.string()), HasSubstr("config.yaml"));
  write("config.yaml", "seed: 1");
  write("eval/final/summary.json",
        "{\"format\": 1, \"suite\": \"s\", \"suite_fingerprint\": \"f\", \"budgets\": {}}");
  EXPECT_THAT(error(run_.string()),
              ::testing::AllOf(HasSubstr("summary.json"), HasSubstr("'budgets' is object")));
  write("eval/final/summary.json", "[]");
  EXPECT_THAT(error(run_.string()), HasSubstr("summary.json"));
  std::filesystem::remove_all(run_ / "eval");
  write("metrics.jsonl", "{\"kind\": \"iteration\", \"iteration\": \"x\"}\n");
  EXPECT_THAT(error(run_.string()), HasSubstr("metrics.jsonl:1"));
  std::filesystem::remove(run_ / "metrics.jsonl");
  write("diagnostics.json", "{\"initial_prefixes\": {\"kl\": 1, \"less_likely\": 0, \"cumulative\": [[1]]}}");
  EXPECT_THAT(error(run_.string()), HasSubstr("[change, share]"));
  std::filesystem::remove(run_ / "diagnostics.json");
  write("diagnosis.json", "{\"students\": [\"a\"], \"sources\": [\"a\"], \"kl\": [[1, 2]]}");
  EXPECT_THAT(error(run_.string()), HasSubstr("does not have 1 numbers"));
}

TEST_F(RunDirectory, SettingsOfAConfigAreFlatAndBounded) {
  write("config.yaml", "a: {b: [1, null, x]}\nstages:\n  - {source: current}\n  - {source: initial}\n");
  EXPECT_THAT(read_run(run_.string()).config,
              ::testing::ElementsAre(::testing::Pair("a.b", "[1, null, x]"),
                                     ::testing::Pair("stages[0].source", "current"),
                                     ::testing::Pair("stages[1].source", "initial")));
  std::string many = "a: [{k: v}";
  for (int i = 0; i < 9000; ++i) many += ", {k: v}";
  write("config.yaml", many + "]\n");
  EXPECT_EQ(read_run(run_.string()).config.size(), 4000u);
}

}  // namespace
}  // namespace ropd::report
