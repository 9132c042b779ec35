#include "train/run_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/stop.h"
#include "base/threads.h"
#include "base/version.h"
#include "support/crew_runs.h"

namespace ropd::train {
namespace {

using testing::HasSubstr;

class RunOfSeveralRanks : public testing::Test {
 protected:
  RunOfSeveralRanks() { set_log_level(LogLevel::quiet); }
  ~RunOfSeveralRanks() override {
    clear_stop_request();
    set_num_threads(1);
    set_log_level(LogLevel::info);
  }
  const test::TinyWorld world{test::four_blocks()};

  // Current and initial rollouts, the trigger watching all along, an evaluation.
  TrainConfig config(const std::string& output, std::vector<std::string> more = {}) const {
    write_file_atomically(world.path("suite.yaml"),
                          "name: tiny\nprompt_suffix: \"\"\nbenchmarks:\n"
                          "  - {name: first, file: queries.jsonl, samples: 2}\n");
    more.insert(more.end(), {"train.shards=8", "trigger.watch=always",
                             "curriculum.stages=[{source: current, iterations: 3}, {source: initial}]",
                             "eval.suite=" + world.path("suite.yaml").string(),
                             "eval.data=" + world.path("").string(), "eval.max_tokens=8"});
    return world.config(output, more);
  }
  RunOutcome start(const TrainConfig& run, int ranks) const {
    return test::run_in_crew(ranks, [&](comm::Crew& crew) { return start_run(run, "test", {}, crew); });
  }
};

TEST_F(RunOfSeveralRanks, LeavesTheFilesOfOneRank) {
  ASSERT_EQ(start(config("alone"), 1), RunOutcome::done);
  const auto expected = test::results_of(world.path("alone"));
  ASSERT_TRUE(expected.contains("banks/initial.jsonl") && expected.contains("rollouts/iter-0001.jsonl") &&
              expected.contains("eval/step-00012/responses.jsonl") &&
              expected.contains("checkpoints/step-00012/model/model.safetensors"));
  for (const int ranks : {2, 3, 4, 8}) {
    const std::string name = std::to_string(ranks) + " ranks";
    set_num_threads(static_cast<size_t>(ranks) % 3 + 1);
    ASSERT_EQ(start(config(name), ranks), RunOutcome::done);
    EXPECT_EQ(test::results_of(world.path(name)), expected) << name;
  }
  // Those that have the teacher score while the others sample.
  for (const int teachers : {1, 2}) {
    const std::string name = std::to_string(teachers) + " with the teacher";
    const std::vector<std::string> setting = {"train.teacher_ranks=" + std::to_string(teachers)};
    ASSERT_EQ(start(config(name, setting), 3), RunOutcome::done);
    EXPECT_EQ(test::results_of(world.path(name)), expected) << name;
  }
}

TEST_F(RunOfSeveralRanks, FewerShardsThanRanksAndWholeDistributionsChangeNothing) {
  for (const std::string objective : {"full_reverse_kl", "candidates"}) {
    const auto run = [&](const std::string& name, int ranks) {
      const TrainConfig c =
          config(name, {"objective.kind=" + objective, "train.iterations=4", "train.minibatch=2"});
      EXPECT_EQ(start(c, ranks), RunOutcome::done);
      return test::results_of(world.path(name));
    };
    const auto expected = run(objective + " 1", 1);
    EXPECT_EQ(run(objective + " 4", 4), expected);
  }
}

TEST_F(RunOfSeveralRanks, StopsAndGoesOnWithAnotherNumberOfRanks) {
  ASSERT_EQ(start(config("whole"), 1), RunOutcome::done);
  const TrainConfig pieces = config("pieces");
  RunOutcome outcome = RunOutcome::stopped;
  uint64_t session = 0;
  for (; outcome == RunOutcome::stopped && session < 20; ++session) {
    clear_stop_request();
    const int ranks = std::vector{4, 2, 1, 3}[session % 4];
    const auto hooks = SessionHooks{.on_step = [session](const StepRecord& step) {
      if (step.step % 12 == 2 * session + 2) request_stop();
    }};
    outcome = test::run_in_crew(ranks, [&](comm::Crew& crew) {
      return session == 0 ? start_run(pieces, "test", hooks, crew)
                          : resume_run(pieces.output, "test", hooks, {}, crew);
    });
  }
  EXPECT_GE(session, 5u);
  const auto expected = test::results_of(world.path("whole")), found = test::results_of(world.path("pieces"));
  for (const auto& [name, content] : expected) {
    if (name.starts_with("checkpoints/") && !name.starts_with("checkpoints/step-00012")) continue;
    EXPECT_EQ(found.contains(name) ? found.at(name) : "missing", content) << name;
  }
}

TEST_F(RunOfSeveralRanks, ContinuesFromACheckpointOfOneRank) {
  ASSERT_EQ(start(config("first"), 1), RunOutcome::done);
  const auto continued = [&](const std::string& name, int ranks) {
    const std::string checkpoint = (world.path("first") / "checkpoints/step-00012").string();
    EXPECT_EQ(start(config(name, {"continue_from=" + checkpoint}), ranks), RunOutcome::done);
    return test::results_of(world.path(name));
  };
  EXPECT_EQ(continued("by three", 3), continued("alone", 1));
}

TEST_F(RunOfSeveralRanks, OtherFilesOnARankAreRefusedByName) {
  const TrainConfig run = config("run");
  const auto failure = [&](const std::function<void()>& before_assisting, const TrainConfig& own) {
    return test::error_of([&] {
      comm::run_thread_world(2, [&](comm::World& ranks) {
        comm::Crew crew(ranks);
        if (crew.leads()) {
          start_run(run, "test", {}, crew);
          return;
        }
        before_assisting();
        assist_run(crew, own);
      });
    });
  };
  TrainConfig other = run;
  other.train.learning_rate = 0.5;
  EXPECT_THAT(failure([] {}, other),
              testing::AllOf(HasSubstr("rank 1"), HasSubstr("settings"), HasSubstr("train.learning_rate")));
}

}  // namespace
}  // namespace ropd::train
