// What a run depends on, changed under its feet: nothing of it passes in silence, and nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/stop.h"
#include "support/whole_run.h"
#include "train/session.h"
#include "train/verify_run.h"

namespace ropd::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::final_weights;
using testing::AllOf;
using testing::HasSubstr;

class Integrity : public testing::Test {
 protected:
  Integrity() { set_log_level(LogLevel::quiet); }
  ~Integrity() override {
    clear_stop_request();
    set_log_level(LogLevel::info);
  }
  const test::TinyWorld world;

  Path run_path(const std::string& name = "") const { return world.path("run") / name; }
  void run_until_step(const TrainConfig& config, uint64_t step) const {
    EXPECT_EQ(start_run(config, "test",
                        {.on_step =
                             [step](const StepRecord& record) {
                               if (record.step == step) request_stop();
                             }}),
              RunOutcome::stopped);
    clear_stop_request();
  }
  std::string resume_error(const ResumeOptions& options = {}) const {
    return error_of([&] { resume_run(run_path(), "test", {}, options); });
  }
  std::string whole_run(const std::vector<std::string>& settings) const {
    const TrainConfig config = world.config("whole", settings);
    start_run(config, "test");
    return final_weights(config);
  }
};

// In place, as an editor that keeps the inode or a failing disk would.
void flip_byte(const Path& path, size_t from_end) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-static_cast<std::streamoff>(from_end), std::ios::end);
  const auto place = file.tellg();
  const char byte = static_cast<char>(file.get());
  file.seekp(place);
  file.put(static_cast<char>(byte ^ 1));
}

void replace_in(const Path& path, const std::string& from, const std::string& to) {
  std::string text = read_file(path);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos);
  write_file_atomically(path, text.replace(at, from.size(), to));
}

// What remains can be read and would be used.
TEST_F(Integrity, EveryInputIsRefusedByNameWhenOneCharacterOfItChanges) {
  run_until_step(world.config("run"), 3);
  const struct {
    Path path;
    std::string role, from, to;  // from: empty for a byte of a weight
  } inputs[] = {
      {world.path("teacher") / "model.safetensors", "teacher", "", ""},
      {world.path("teacher") / "config.json", "teacher", "\"rms_norm_eps\": 1e-06",
       "\"rms_norm_eps\": 2e-06"},
      {world.path("student") / "model.safetensors", "student", "", ""},
      {world.path("student") / "tokenizer_config.json", "student", "Qwen2Tokenizer", "Qwen3Tokenizer"},
      {world.path("queries.jsonl"), "queries", "\"problem\": \"ab", "\"problem\": \"ac"},
      {run_path("banks/initial.jsonl"), "banks/initial.jsonl", "\"sample\":1", "\"sample\":7"},
  };
  for (const auto& input : inputs) {
    const std::string before = read_file(input.path);
    if (input.from.empty())
      flip_byte(input.path, 5000);
    else
      replace_in(input.path, input.from, input.to);
    EXPECT_THAT(resume_error(), AllOf(HasSubstr(input.role + " (" + input.path.string() + ")"),
                                      HasSubstr("not what the run began with")));
    write_file_atomically(input.path, before);
  }
  EXPECT_EQ(resume_run(run_path(), "test"), RunOutcome::done);
  EXPECT_EQ(final_weights(world.config("run")), whole_run({}));
}

TEST_F(Integrity, ADigitInABankOrInRolloutsDoesNotPass) {
  run_until_step(world.config("run"), 1);  // in the middle of iteration 1
  replace_in(run_path("banks/initial.jsonl"), "\"response_ids\":[", "\"response_ids\":[1,");
  EXPECT_THAT(resume_error(), HasSubstr("banks/initial.jsonl"));
}

TEST_F(Integrity, ATeacherOverwrittenDuringTheRunEndsIt) {
  const TrainConfig config = world.config("run");
  const Path weights = world.path("teacher") / "model.safetensors";
  const std::string error = error_of([&] {
    start_run(config, "test", {.on_step = [&](const StepRecord& step) {
                if (step.step == 5) flip_byte(weights, 1001);
              }});
  });
  EXPECT_THAT(error, AllOf(HasSubstr("teacher ("), HasSubstr("not what the run began with")));
  // Nothing of the iteration was kept: with the teacher put back, the run ends as if nothing had happened.
  flip_byte(weights, 1001);
  EXPECT_EQ(resume_run(run_path(), "test"), RunOutcome::done);
  EXPECT_EQ(final_weights(config), whole_run({}));
}

TEST_F(Integrity, AnEditedConfigIsRefusedAndSaysHowToMeanIt) {
  run_until_step(world.config("run"), 3);
  const std::string before = read_file(run_path("config.yaml"));
  replace_in(run_path("config.yaml"), "learning_rate: ", "learning_rate: 1");
  EXPECT_THAT(resume_error(),
              AllOf(HasSubstr("config.yaml: edited since the run began"), HasSubstr("(train.learning_rate: "),
                    HasSubstr("ropd resume " + run_path().string() + " train.learning_rate=")));
  write_file_atomically(run_path("config.yaml"), before);
  EXPECT_EQ(resume_run(run_path(), "test"), RunOutcome::done);
}

TEST_F(Integrity, MoreIterationsAreAddedOnRequestAndRecorded) {
  const std::string stages = "curriculum.stages=[{source: current}]";
  const std::string expected = whole_run({stages, "train.iterations=5"});
  start_run(world.config("run", {stages, "train.iterations=3"}), "test");
  EXPECT_EQ(
      resume_run(run_path(), "ropd resume run train.iterations=5", {}, {.overrides = {"train.iterations=5"}}),
      RunOutcome::done);
  EXPECT_EQ(final_weights(world.config("run")), expected);
  EXPECT_EQ(load_train_config(run_path("config.yaml")).train.iterations, 5u);
  EXPECT_THAT(read_file(run_path("history.jsonl")),
              HasSubstr(R"("step":9,"changes":[{"key":"train.iterations","before":"3","after":"5"}])"));
  EXPECT_EQ(resume_run(run_path(), "test"), RunOutcome::done) << "from now on it is the run's own setting";
}

// Rollouts that the old rate's weights sampled behind the checkpoint are not taken for the new one's.
TEST_F(Integrity, AnotherRateTakesEffectBehindTheCheckpoint) {
  const std::string stages = "curriculum.stages=[{source: current}]";
  const TrainConfig config = world.config("run", {stages, "checkpoint.every=2"});
  EXPECT_THROW(start_run(config, "test",
                         {.on_step =
                              [](const StepRecord& step) {
                                if (step.step == 10) fail("a power cut in iteration 4");
                              }}),
               Error);
  ASSERT_TRUE(fs::exists(run_path("rollouts/iter-0004.jsonl")));
  EXPECT_EQ(resume_run(run_path(), "test", {}, {.overrides = {"train.learning_rate=0.001"}}),
            RunOutcome::done);
  EXPECT_NE(final_weights(config), whole_run({stages}));
}

TEST_F(Integrity, WhatThePastDependedOnCannotChange) {
  run_until_step(world.config("run"), 3);
  EXPECT_THAT(resume_error({.overrides = {"seed=5"}}), HasSubstr("seed: cannot change inside a run"));
}

TEST_F(Integrity, MovedFilesAreTheSameFiles) {
  run_until_step(world.config("run"), 3);
  fs::rename(world.path("teacher"), world.path("moved"));
  EXPECT_NE(resume_error(), "no error");
  EXPECT_EQ(resume_run(run_path(), "test", {}, {.overrides = {"teacher=" + world.path("moved").string()}}),
            RunOutcome::done);
}

TEST_F(Integrity, ResumesFromAnyDirectory) {
  const Path before = fs::current_path();
  fs::current_path(world.path(""));
  TrainConfig config = world.config("run");
  config.student = "student";
  config.teacher = "teacher";
  config.data.queries = "queries.jsonl";
  run_until_step(config, 3);
  fs::current_path(before);
  EXPECT_EQ(resume_run(run_path(), "test"), RunOutcome::done);
  EXPECT_EQ(final_weights(config), whole_run({}));
}

TEST_F(Integrity, WithoutAUsableCheckpointNothingBeginsByItself) {
  const TrainConfig config = world.config("run");
  run_until_step(config, 6);
  for (const auto& entry : io::list_checkpoints(run_path("checkpoints")))
    flip_byte(entry.path / "state.json", 3);
  const std::string metrics = read_file(run_path("metrics.jsonl"));
  EXPECT_THAT(resume_error(),
              AllOf(HasSubstr("no checkpoint can be used"), HasSubstr("step-00006/state.json"),
                    HasSubstr("step-00003/state.json"),
                    HasSubstr("`ropd resume " + world.path("run").string() + " --start-over`")));
  EXPECT_EQ(read_file(run_path("metrics.jsonl")), metrics);
  EXPECT_EQ(resume_run(run_path(), "test", {}, {.overrides = {}, .starts_over = true}), RunOutcome::done);
  EXPECT_EQ(final_weights(config), whole_run({}));
  EXPECT_TRUE(fs::exists(run_path("checkpoints.given-up-1/step-00006")));
}

TEST_F(Integrity, LinesLostFromTheMetricsComeBackFromTheCheckpoint) {
  run_until_step(world.config("run"), 9);
  const std::string whole = read_file(run_path("metrics.jsonl"));
  const size_t first = whole.find('\n') + 1, second = whole.find('\n', first) + 1;
  write_file_atomically(run_path("metrics.jsonl"), whole.substr(0, first) + whole.substr(second));
  resume_run(run_path(), "test");
  EXPECT_TRUE(read_file(run_path("metrics.jsonl")).starts_with(whole));
  EXPECT_EQ(io::find_gap(io::read_metrics(run_path("metrics.jsonl")), 0, 12), "");
  EXPECT_TRUE(fs::exists(run_path("metrics.discarded.jsonl"))) << "what was found is kept";
}

TEST_F(Integrity, AChangedNumberOfTheMetricsIsNamedAndComesBackFromTheCheckpoint) {
  run_until_step(world.config("run"), 9);
  const std::string whole = read_file(run_path("metrics.jsonl"));
  std::string changed = whole;
  char& digit = changed[changed.find("\"loss\":", changed.find('\n')) + 9];
  digit = digit == '7' ? '8' : '7';
  write_file_atomically(run_path("metrics.jsonl"), changed);
  const std::string line = run_path("metrics.jsonl").string() + ":2: lost or changed";
  EXPECT_THAT(verify_run(run_path()).damages, testing::ElementsAre(testing::StartsWith(line)));
  set_log_level(LogLevel::info);
  testing::internal::CaptureStderr();
  resume_run(run_path(), "test");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(line));
  EXPECT_TRUE(read_file(run_path("metrics.jsonl")).starts_with(whole));
  EXPECT_TRUE(read_file(run_path("metrics.discarded.jsonl")).starts_with(changed));
  EXPECT_TRUE(verify_run(run_path()).damages.empty());
}

TEST_F(Integrity, AChangeOfTheMetricsDuringARunDoesNotReachItsCheckpoints) {
  const TrainConfig config = world.config("run", {"checkpoint.keep=1"});
  const auto change = [&](const StepRecord& record) {
    if (record.step != 8) return;
    std::string text = read_file(run_path("metrics.jsonl"));
    char& digit = text[text.find("\"loss\":") + 9];
    digit = static_cast<char>(digit ^ 1);
    std::ofstream(run_path("metrics.jsonl"), std::ios::in | std::ios::out) << text;  // the file that the run has open
  };
  ASSERT_EQ(start_run(config, "test", {.on_step = change}), RunOutcome::done);
  EXPECT_THAT(verify_run(run_path()).damages, testing::ElementsAre(HasSubstr("metrics.jsonl:1: lost or changed")));
}

TEST_F(Integrity, DivergenceIsSaidAndAGoodCheckpointNamed) {
  test::run_to_the_end(world.config(
      "run", {"train.iterations=2", "checkpoint.keep=0", "curriculum.stages=[{source: current}]"}));
  ASSERT_EQ(
      resume_run(run_path(), "test", {}, {.overrides = {"train.iterations=4", "train.learning_rate=10"}}),
      RunOutcome::done);
  std::string alarms;
  for (const IterationRecord& record : io::read_metrics(run_path("metrics.jsonl")).iterations)
    for (const std::string& alarm : record.alarms)
      alarms += std::to_string(record.iteration) + ": " + alarm + "\n";
  EXPECT_THAT(alarms, AllOf(testing::StartsWith("4: "), HasSubstr("the run diverges"),
                            HasSubstr("checkpoints/step-00006 "), HasSubstr("lower train.learning_rate")));
}

// Everything is checked before the folder is made.
TEST_F(Integrity, ARefusedStartLeavesNothing) {
  const std::string bank = world.write_bank("bank.jsonl", test::random_rollouts(3, 37, 1)).string();
  for (const std::string& setting :
       {"data.queries=" + world.path("typo.jsonl").string(), std::string("objective.top_k=200"),
        "teacher=" + world.path("nowhere").string(), std::string("eval.suite=nowhere.yaml"),
        "curriculum.stages=[{source: bank, path: " + bank + "}]",
        "continue_from=" + world.path("student").string()}) {
    const TrainConfig config = world.config("run", {setting});
    EXPECT_NE(error_of([&] { start_run(config, "test"); }), "no error") << setting;
    EXPECT_FALSE(fs::exists(run_path())) << setting;
    EXPECT_NE(error_of([&] { (void)check_start(config); }), "no error") << setting;
  }
  EXPECT_EQ(start_run(world.config("run"), "test"), RunOutcome::done);
}

// A continuation is checked as a run that begins at step 0 is.
TEST_F(Integrity, ARefusedContinuationLeavesNothing) {
  const std::string stages = "curriculum.stages=[{source: current}]";
  start_run(world.config("full", {stages, "train.iterations=1"}), "test");
  start_run(world.config("adapted", {stages, "train.iterations=1", "adapter={rank: 2}"}), "test");
  const auto from = [&](const char* run) {
    return "continue_from=" + (world.path(run) / "checkpoints/step-00003").string();
  };
  const auto error = [&](const std::vector<std::string>& settings) {
    const TrainConfig config = world.config("run", settings);
    const std::string text = error_of([&] { start_run(config, "test"); });
    EXPECT_EQ(error_of([&] { (void)check_start(config); }), text) << "as a dry run says";
    EXPECT_FALSE(fs::exists(run_path())) << text;
    return text;
  };
  EXPECT_THAT(error({from("full"),
                     "curriculum.stages=[{source: current, iterations: 1}, {source: recent, step: 1}]"}),
              HasSubstr("recent step 1 lies before the first step of this run, 3"));
  EXPECT_THAT(error({from("adapted"), stages, "adapter={rank: 3}"}),
              AllOf(HasSubstr("step-00003/model"), HasSubstr("another adapter than this run trains")));
  EXPECT_THAT(error({from("full"), stages, "rollout.memory_gb=900000"}), HasSubstr("rollout.memory_gb"));
  EXPECT_EQ(start_run(world.config("run", {from("full"), "train.iterations=2",
                                           "curriculum.stages=[{source: current, iterations: 1}, "
                                           "{source: recent, step: 6}]"}),
                      "test"),
            RunOutcome::done)
      << "its own steps come behind those of the other run";
}

TEST_F(Integrity, VerifyFindsEveryKindOfDamage) {
  start_run(world.config("run", {"checkpoint.keep=0"}), "test");
  EXPECT_THAT(verify_run(run_path()).damages, testing::IsEmpty());
  EXPECT_GE(verify_run(run_path()).found.size(), 7u);
  const Path paths[] = {run_path("config.yaml"), world.path("teacher") / "model.safetensors",
                        run_path("banks/initial.jsonl"), run_path("rollouts/iter-0001.jsonl"),
                        run_path("checkpoints/step-00006/optimizer.safetensors")};
  for (const Path& path : paths) {
    const std::string before = read_file(path);
    flip_byte(path, 3);
    EXPECT_GE(verify_run(run_path()).damages.size(), 1u) << path;
    write_file_atomically(path, before);
  }
  flip_byte(run_path("checkpoints/step-00006/model/README.md"), 3);
  EXPECT_TRUE(verify_run(run_path()).damages.empty());
  EXPECT_EQ(verify_run(run_path()).blemishes.size(), 1u);
  const std::string metrics = read_file(run_path("metrics.jsonl"));
  write_file_atomically(run_path("metrics.jsonl"), metrics.substr(metrics.find('\n') + 1));
  EXPECT_THAT(verify_run(run_path()).damages, testing::ElementsAre(HasSubstr("metrics.jsonl:1: lost or changed")));
}

}  // namespace
}  // namespace ropd::train
