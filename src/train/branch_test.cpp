#include "train/branch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/whole_run.h"

namespace ropd::train {
namespace {

using test::error_of;
using test::final_weights;
using testing::HasSubstr;

class Branch : public testing::Test {
 protected:
  Branch() { set_log_level(LogLevel::quiet); }
  ~Branch() override { set_log_level(LogLevel::info); }
  const test::TinyWorld world;
  TrainConfig current_only(const std::string& output, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"train.iterations=7", "curriculum.stages=[{source: current}]",
                               "trigger.watch=always", "checkpoint.keep=0"});
    return world.config(output, more);
  }
};

TEST_F(Branch, ARopdRunFromTheTriggerOfACurrentOnlyRunEqualsARealOne) {
  const TrainConfig real = world.config("real", {"train.iterations=7", "trigger.persistence=1"});
  const auto metrics = test::run_to_the_end(real);
  const auto tau = metrics.iterations.back().trigger.tau;
  ASSERT_TRUE(tau && *tau < 7);
  test::run_to_the_end(current_only("current"));
  EXPECT_NE(final_weights(current_only("current")), final_weights(real));

  const TrainConfig branched = world.config("branched", {"train.iterations=7", "trigger.persistence=1"});
  branch_run(world.path("current"), 3 * *tau, branched);
  EXPECT_EQ(resume_run(world.path("branched"), "test"), RunOutcome::done);
  EXPECT_EQ(final_weights(branched), final_weights(real));
  const auto again = io::read_metrics(world.path("branched") / "metrics.jsonl");
  ASSERT_EQ(again.iterations.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(again.iterations[i].source, metrics.iterations[i].source);
    EXPECT_EQ(again.iterations[i].loss, metrics.iterations[i].loss);
    EXPECT_EQ(again.iterations[i].trigger.tau, metrics.iterations[i].trigger.tau);
    EXPECT_EQ(again.iterations[i].rounds, metrics.iterations[i].rounds);
  }
  branch_run(world.path("current"), 3, branched);  // a run already: nothing happens
  EXPECT_EQ(final_weights(branched), final_weights(real));
}

TEST_F(Branch, AnotherRunIsNotTakenForTheBranch) {
  test::run_to_the_end(current_only("current", {"train.iterations=2"}));
  const TrainConfig other = current_only("other", {"train.iterations=1", "seed=9"});
  test::run_to_the_end(other);
  const std::string before = final_weights(other);
  EXPECT_THAT(error_of([&] { branch_run(world.path("current"), 3, current_only("other")); }),
              testing::AllOf(HasSubstr(world.path("other").string()), HasSubstr("holds another run")));
  EXPECT_THAT(error_of([&] { branch_run(world.path("current"), 3, current_only("student")); }),
              HasSubstr("is not empty"));
  EXPECT_EQ(final_weights(other), before);
}

// The recorded numbers are all a trigger sees, so a run that was not made for it can be judged by it.
TEST_F(Branch, ARunByAnotherTriggerEqualsARealOneAndItsWatchedTriggersToo) {
  const std::vector<std::string> settings = {
      "train.iterations=7", "trigger.kind=kl_plateau", "trigger.tolerance=0.5", "trigger.earliest=3",
      "trigger.watched=[{name: paper, persistence: 1}, {name: length, kind: length_plateau, window: 2}]"};
  const TrainConfig real = world.config("real", settings), branched = world.config("branched", settings);
  const auto metrics = test::run_to_the_end(real);
  const auto tau = metrics.iterations.back().trigger.tau;
  ASSERT_TRUE(tau && *tau < 7);
  test::run_to_the_end(current_only("current"));
  branch_run(world.path("current"), 3 * *tau, branched);
  EXPECT_EQ(resume_run(world.path("branched"), "test"), RunOutcome::done);
  EXPECT_EQ(final_weights(branched), final_weights(real));
  const auto again = io::read_metrics(world.path("branched") / "metrics.jsonl");
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(again.iterations[i].trigger.tau, metrics.iterations[i].trigger.tau);
    EXPECT_EQ(again.iterations[i].trigger.watched, metrics.iterations[i].trigger.watched);
    EXPECT_EQ(again.iterations[i].stage, metrics.iterations[i].stage);
  }
}

TEST_F(Branch, TheOutputMayEndWithASlash) {
  test::run_to_the_end(current_only("current", {"train.iterations=2"}));
  TrainConfig branched = current_only("branched", {"train.iterations=3"});
  branched.output += "/";
  branch_run(world.path("current"), 3, branched);
  EXPECT_TRUE(std::filesystem::exists(world.path("branched") / "config.yaml"));
  for (const auto& entry : std::filesystem::directory_iterator(world.path("")))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  EXPECT_EQ(resume_run(branched.output, "test"), RunOutcome::done);
}

TEST_F(Branch, LaterRolloutsAndBanksAreLeftBehind) {
  const std::vector<std::string> stages = {
      "curriculum.stages=[{source: current, iterations: 1}, {source: initial, iterations: 1}, "
      "{source: current, iterations: 2}, {source: recent, step: 12}]",
      "train.iterations=5", "checkpoint.keep=0"};
  test::run_to_the_end(world.config("parent", stages));
  const TrainConfig child =
      world.config("child", {"curriculum.stages=[{source: current, iterations: 1}, {source: current, "
                             "iterations: 3}, {source: recent, step: 12}]",
                             "train.iterations=5", "checkpoint.keep=0"});
  branch_run(world.path("parent"), 3, child);
  EXPECT_EQ(resume_run(world.path("child"), "test"), RunOutcome::done);
  const auto metrics = io::read_metrics(world.path("child") / "metrics.jsonl");
  EXPECT_THAT(test::sources_of(metrics),
              testing::ElementsAre("current", "current", "current", "current", "recent:12"));
}

TEST_F(Branch, RefusesWhatWasNotShared) {
  test::run_to_the_end(current_only("current"));
  const auto error = [&](uint64_t step, std::vector<std::string> settings) {
    settings.push_back("train.iterations=7");
    return error_of([&] { branch_run(world.path("current"), step, world.config("new", settings)); });
  };
  EXPECT_THAT(error(9, {"train.learning_rate=0.004"}), HasSubstr("differ in more than their curriculum"));
  EXPECT_THAT(error(9, {"seed=2"}), HasSubstr("differ in more than their curriculum"));
  EXPECT_THAT(error(9, {"curriculum.stages=[{source: initial}]"}),
              testing::AllOf(HasSubstr("iteration 1 used current"), HasSubstr("initial")));
  EXPECT_THAT(error(8, {}), HasSubstr("no checkpoint of step 8"));
  EXPECT_FALSE(std::filesystem::exists(world.path("new")));
  test::run_to_the_end(
      world.config("unwatched", {"train.iterations=2", "curriculum.stages=[{source: current}]"}));
  EXPECT_THAT(
      error_of([&] { branch_run(world.path("unwatched"), 6, world.config("new", {"train.iterations=7"})); }),
      HasSubstr("trigger.watch=always"));
}

}  // namespace
}  // namespace ropd::train
