#include "train/run_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/stop.h"
#include "support/whole_run.h"

namespace ropd::train {
namespace {

TEST(IsEvaluationDue, AtTheEndAndEverySoManyIterations) {
  EvalConfig config;
  EXPECT_FALSE(is_evaluation_due(config, 15, 15));
  config.suite = "three";
  EXPECT_TRUE(is_evaluation_due(config, 15, 15));
  EXPECT_FALSE(is_evaluation_due(config, 10, 15));
  config.every = 5;
  EXPECT_TRUE(is_evaluation_due(config, 10, 15));
  EXPECT_FALSE(is_evaluation_due(config, 11, 15));
}

// Five iterations of three steps, evaluated behind the second, the fourth and the last: steps 6, 12 and 15.
class EvaluationInARun : public testing::Test {
 protected:
  EvaluationInARun() {
    set_log_level(LogLevel::quiet);
    write_file_atomically(world.path("suite.yaml"),
                          "name: tiny\nprompt_suffix: \"\"\nbenchmarks:\n"
                          "  - {name: first, file: queries.jsonl, samples: 2}\n");
  }
  ~EvaluationInARun() override {
    clear_stop_request();
    set_log_level(LogLevel::info);
  }
  const test::TinyWorld world;
  TrainConfig config(const std::string& output) const {
    return world.config(output, {"train.iterations=5", "eval.suite=" + world.path("suite.yaml").string(),
                                 "eval.data=" + world.path("").string(), "eval.every=2", "eval.max_tokens=8",
                                 "eval.budgets=[4, 8]"});
  }
  Path evaluation(const std::string& output, const std::string& step) const {
    return world.path(output) / "eval" / step;
  }
  std::vector<std::string> evaluations(const std::string& output) const {
    std::vector<std::string> names;
    if (!std::filesystem::exists(world.path(output) / "eval")) return names;
    for (const auto& entry : std::filesystem::directory_iterator(world.path(output) / "eval"))
      if (std::filesystem::exists(entry.path() / "summary.json"))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(EvaluationInARun, LeavesItsFilesAndItsTimeAndDoesNotTouchTraining) {
  const auto metrics = test::run_to_the_end(config("run"));
  EXPECT_THAT(evaluations("run"), testing::ElementsAre("step-00006", "step-00012", "step-00015"));
  const Json summary =
      parse_json(read_file(evaluation("run", "step-00006") / "summary.json"), "summary.json");
  EXPECT_THAT(summary.dump(), testing::HasSubstr("\"first\""));
  const std::string responses = read_file(evaluation("run", "step-00006") / "responses.jsonl");
  EXPECT_EQ(std::count(responses.begin(), responses.end(), '\n'), 6 * 2);
  EXPECT_NE(responses, read_file(evaluation("run", "step-00015") / "responses.jsonl"));
  std::vector<bool> is_timed;  // an evaluation stands on the line behind it
  for (const IterationRecord& record : metrics.iterations) is_timed.push_back(record.seconds.evaluation > 0);
  EXPECT_THAT(is_timed, testing::ElementsAre(false, false, true, false, true));

  TrainConfig without = config("without");
  without.eval = {};
  test::run_to_the_end(without);
  EXPECT_EQ(test::final_weights(without), test::final_weights(config("run")));
}

TEST_F(EvaluationInARun, IsNeitherLostNorRepeatedWhenTheRunStopsAndGoesOn) {
  test::run_to_the_end(config("whole"));
  const TrainConfig pieces = config("pieces");
  const auto run_until = [&](uint64_t step) {
    clear_stop_request();
    return start_or_resume_run(pieces, "test", {.on_step = [step](const StepRecord& record) {
                                 if (record.step == step) request_stop();
                               }});
  };
  EXPECT_EQ(run_until(6), RunOutcome::stopped);  // the iteration closes, the evaluation behind it is stopped
  EXPECT_THAT(evaluations("pieces"), testing::IsEmpty());
  EXPECT_EQ(run_until(9), RunOutcome::stopped);
  EXPECT_THAT(evaluations("pieces"), testing::ElementsAre("step-00006"));
  const auto written = std::filesystem::last_write_time(evaluation("pieces", "step-00006") / "summary.json");
  EXPECT_EQ(run_until(15), RunOutcome::stopped);  // inside the last one
  EXPECT_EQ(run_until(0), RunOutcome::done);
  EXPECT_EQ(run_until(0), RunOutcome::done);  // nothing left to do
  EXPECT_EQ(evaluations("pieces"), evaluations("whole"));
  EXPECT_EQ(std::filesystem::last_write_time(evaluation("pieces", "step-00006") / "summary.json"), written);
  for (const std::string& step : evaluations("whole"))
    EXPECT_EQ(read_file(evaluation("pieces", step) / "responses.jsonl"),
              read_file(evaluation("whole", step) / "responses.jsonl"));
  EXPECT_EQ(test::final_weights(pieces), test::final_weights(config("whole")));
}

TEST_F(EvaluationInARun, RefusesASuiteThatCannotBeAskedBeforeAnythingTrains) {
  TrainConfig wrong = config("run");
  wrong.eval.data = world.path("student").string();
  EXPECT_THAT(test::error_of([&] { start_run(wrong, "test"); }), testing::HasSubstr("queries.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(world.path("run") / "metrics.jsonl"));
}

TEST_F(EvaluationInARun, IsRefusedWhenItsQuestionsChangeDuringTheRun) {
  std::filesystem::copy_file(world.path("queries.jsonl"), world.path("questions.jsonl"));
  write_file_atomically(world.path("suite.yaml"),
                        "name: tiny\nprompt_suffix: \"\"\nbenchmarks:\n"
                        "  - {name: first, file: questions.jsonl, samples: 2}\n");
  const auto change = [&](const StepRecord& record) {
    if (record.step != 8) return;
    std::string text = read_file(world.path("questions.jsonl"));
    text.replace(text.find("ab0"), 3, "ab9");
    write_file_atomically(world.path("questions.jsonl"), text);
  };
  EXPECT_THAT(
      test::error_of([&] { start_run(config("run"), "test", {.on_step = change}); }),
      testing::HasSubstr("benchmark first (" + world.path("questions.jsonl").string() + "): its content"));
  EXPECT_THAT(evaluations("run"), testing::ElementsAre("step-00006"));
  EXPECT_THAT(test::error_of([&] { resume_run(world.path("run"), "test"); }),
              testing::HasSubstr("questions.jsonl"));
}

}  // namespace
}  // namespace ropd::train
