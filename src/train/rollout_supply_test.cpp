// The sources of method.md section 6, read back from the metrics of whole runs.
#include "train/rollout_supply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/stop.h"
#include "support/whole_run.h"
#include "train/local_run.h"

namespace ropd::train {
namespace {

using test::error_of;
using test::sources_of;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

struct Budget {
  uint64_t consumed, steps, queries, rounds;  // C, U, N, M
  bool operator==(const Budget&) const = default;
};
Budget budget_of(const io::Metrics& metrics) {
  const IterationRecord& last = metrics.iterations.back();
  return {last.consumed, last.step, last.queries, last.rounds};
}
std::ostream& operator<<(std::ostream& out, const Budget& b) {
  return out << "C " << b.consumed << " U " << b.steps << " N " << b.queries << " M " << b.rounds;
}

class Curricula : public testing::Test {
 protected:
  ~Curricula() override {
    clear_stop_request();
    set_log_level(LogLevel::info);
  }
  const test::TinyWorld world;
  io::Metrics run(const std::string& stages, uint64_t iterations, std::vector<std::string> more = {}) const {
    more.insert(more.end(),
                {"train.iterations=" + std::to_string(iterations), "curriculum.stages=" + stages});
    return test::run_to_the_end(world.config("run", more));
  }
};

TEST_F(Curricula, CurrentOnly) {
  const auto metrics = run("[{source: current}]", 3);
  EXPECT_THAT(sources_of(metrics), ElementsAre("current", "current", "current"));
  EXPECT_EQ(budget_of(metrics), (Budget{30, 9, 6, 3}));
  for (const IterationRecord& record : metrics.iterations) EXPECT_EQ(record.rollout_policy_age, 0);
  EXPECT_FALSE(std::filesystem::exists(world.path("run") / "banks" / "initial.jsonl"));
}

TEST_F(Curricula, ScoresTakenWhileSamplingAreThoseOfAPassOverTheResponses) {
  set_log_level(LogLevel::quiet);
  for (const std::string precision : {"f32", "bf16", "bf16_tiles"}) {
    const TrainConfig config =
        world.config("run-" + precision, {"rollout.precision=" + precision, "train.precision=" + precision,
                                          "rollout.temperature=1.3", "objective.top_k=7"});
    const auto directory = io::RunDirectory::create(config.output, "test: 1\n", "{}\n");
    const ModelPair models = load_models(config);
    const QuerySet queries = load_queries(config, *models.student_renderer);
    LocalRun local(config, directory, models, queries);
    const Source current{.kind = SourceKind::current};
    const SupplyState before = local.supply.state();
    const auto sampled = local.supply.take(current, 1, 0);
    model::Workspace workspace;
    const auto passed = distill::score_student(
        local.learner.weights(), sampled.rollouts,
        {.top_k = 7, .precision = config.train.precision, .temperature = 1.3f}, workspace);
    ASSERT_EQ(sampled.scores.size(), sampled.rollouts.size());
    for (size_t i = 0; i < passed.size(); ++i) {
      EXPECT_EQ(sampled.scores[i].query_id, passed[i].query_id);
      EXPECT_EQ(sampled.scores[i].sample, passed[i].sample);
      EXPECT_EQ(sampled.scores[i].top_k, passed[i].top_k);
      EXPECT_EQ(sampled.scores[i].candidates, passed[i].candidates);
      EXPECT_EQ(sampled.scores[i].student_logprobs, passed[i].student_logprobs);
      EXPECT_EQ(sampled.scores[i].sampled_logprobs, passed[i].sampled_logprobs);
      EXPECT_EQ(sampled.scores[i].student_entropy, passed[i].student_entropy);
    }
    local.supply.restore(before);  // after a restart the responses are there, their logits are not
    EXPECT_TRUE(local.supply.take(current, 1, 0).scores.empty());
  }
}

TEST_F(Curricula, ScoresAreNotTakenInAnotherPrecision) {
  set_log_level(LogLevel::quiet);
  const TrainConfig config = world.config("run", {"rollout.precision=bf16", "train.precision=f32"});
  const auto directory = io::RunDirectory::create(config.output, "test: 1\n", "{}\n");
  const ModelPair models = load_models(config);
  const QuerySet queries = load_queries(config, *models.student_renderer);
  LocalRun local(config, directory, models, queries);
  const auto sampled = local.supply.take({.kind = SourceKind::current}, 1, 0);
  EXPECT_FALSE(sampled.rollouts.empty());
  EXPECT_TRUE(sampled.scores.empty());
}

TEST_F(Curricula, InitialOnlyWalksTheBankAndStartsOver) {
  const auto metrics = run("[{source: initial}]", 3);
  EXPECT_THAT(sources_of(metrics), Each("initial"));
  EXPECT_EQ(budget_of(metrics), (Budget{30, 9, 6, 1}));
  EXPECT_EQ(metrics.iterations[2].rollout_policy_age, 6);
  EXPECT_EQ(metrics.iterations[0].response_tokens, metrics.iterations[2].response_tokens);  // batch 1 again
}

// A kill may come between a bank and the removal of what it was made from.
TEST_F(Curricula, NothingIsLeftBesideAFinishedInitialBank) {
  const TrainConfig config = world.config("run", {"curriculum.stages=[{source: initial}]"});
  const auto directory = io::RunDirectory::create(config.output, "test: 1\n", "{}\n");
  const ModelPair models = load_models(config);
  const QuerySet queries = load_queries(config, *models.student_renderer);
  const Path partial = io::bank_partial_path(directory.initial_bank());
  for (int session = 0; session < 2; ++session) {
    LocalRun local(config, directory, models, queries);
    EXPECT_TRUE(local.supply.make_initial_bank());
    EXPECT_FALSE(std::filesystem::exists(partial));
    write_file_atomically(partial, "left by a kill");
  }
}

TEST_F(Curricula, FixedSwitch) {
  const auto metrics = run("[{source: current, iterations: 2}, {source: initial}]", 4);
  EXPECT_THAT(sources_of(metrics), ElementsAre("current", "current", "initial", "initial"));
  EXPECT_EQ(budget_of(metrics), (Budget{40, 12, 6, 3}));
}

TEST_F(Curricula, RopdSwitchesBehindItsTrigger) {
  const auto metrics = run("[{source: current, until: trigger}, {source: initial}]", 12);
  std::optional<uint64_t> tau;
  uint64_t row = 0;
  for (const IterationRecord& record : metrics.iterations) {
    EXPECT_EQ(record.source, tau ? "initial" : "current");
    if (tau) {
      EXPECT_EQ(record.trigger.tau, tau);
      continue;
    }
    if (record.trigger.distance) row = *record.trigger.distance <= *record.trigger.noise ? row + 1 : 0;
    EXPECT_EQ(record.trigger.tau.has_value(), row == 2);
    tau = record.trigger.tau;
  }
  ASSERT_TRUE(tau && *tau >= 3 && *tau < 12);
  EXPECT_EQ(budget_of(metrics), (Budget{120, 36, 6, *tau + 1}));
}

TEST_F(Curricula, OrderControl) {
  const auto metrics =
      run("[{source: current, iterations: 1}, {source: initial, iterations: 2}, {source: current, "
          "iterations: 1}]",
          4);
  EXPECT_THAT(sources_of(metrics), ElementsAre("current", "initial", "initial", "current"));
  EXPECT_EQ(budget_of(metrics), (Budget{40, 12, 6, 3}));
  EXPECT_EQ(metrics.iterations[3].stage, 2u);
}

TEST_F(Curricula, RecentIsFrozenAtItsStep) {
  const auto metrics = run("[{source: current, iterations: 2}, {source: recent, step: 6}]", 4);
  EXPECT_THAT(sources_of(metrics), ElementsAre("current", "current", "recent:6", "recent:6"));
  EXPECT_EQ(budget_of(metrics), (Budget{40, 12, 6, 3}));
  EXPECT_EQ(metrics.iterations[3].rollout_policy_age, 3);
  for (const Rollout& rollout : io::read_rollouts(world.path("run") / "banks" / "recent-00006.jsonl"))
    EXPECT_EQ(rollout.policy_step, 6u);
}

TEST_F(Curricula, ARecentBankIsKnownByTheWeightsItWasFrozenFrom) {
  const TrainConfig config = world.config(
      "run", {"train.iterations=4",
              "curriculum.stages=[{source: current, iterations: 2}, {source: recent, step: 6}]"});
  set_log_level(LogLevel::warnings);
  testing::internal::CaptureStderr();
  start_run(config, "test", {.on_step = [](const StepRecord& step) {
              if (step.step == 9) request_stop();
            }});
  clear_stop_request();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // a bank of one's own is no surprise
  set_log_level(LogLevel::quiet);
  const Path bank = world.path("run") / "banks" / "recent-00006.meta.json";
  std::string meta = read_file(bank);
  const size_t at = meta.find("all:", meta.find("model_fingerprint")) + 4;
  meta[at] = meta[at] == 'a' ? 'b' : 'a';
  write_file_atomically(bank, meta);
  EXPECT_THAT(error_of([&] { resume_run(world.path("run"), "test"); }),
              HasSubstr("was sampled from another model"));
}

TEST_F(Curricula, ABankFromAFileNeedsNeitherQueriesNorTokenizer) {
  const Path bank = world.write_bank("bank.jsonl", test::random_rollouts(25, 37, 3));
  for (const char* folder : {"student", "teacher"}) {
    std::filesystem::remove(world.path(folder) / "tokenizer.json");
    std::filesystem::remove(world.path(folder) / "tokenizer_config.json");
  }
  const auto metrics = run("[{source: bank, path: " + bank.string() + "}]", 3);
  EXPECT_THAT(sources_of(metrics), Each("bank:" + bank.string()));
  EXPECT_EQ(budget_of(metrics), (Budget{30, 9, 4, 1}));
}

TEST_F(Curricula, AMixHoldsHalfOfEachInEveryMinibatch) {
  for (const std::string reduction : {"minibatch_tokens", "source_balanced"}) {
    const auto metrics = test::run_to_the_end(world.config(
        reduction, {"train.iterations=2", "curriculum.stages=[{source: mix, of: [current, initial]}]",
                    "train.reduction=" + reduction}));
    EXPECT_THAT(sources_of(metrics), Each("mix(current,initial)"));
    EXPECT_EQ(budget_of(metrics), (Budget{20, 6, 6, 3}));
    EXPECT_EQ(metrics.iterations[1].rollout_policy_age, 1.5);  // half is three steps old, half is new
    EXPECT_EQ(io::read_rollouts(world.path(reduction) / "rollouts" / "iter-0002.jsonl").size(), 5u);
  }
}

// Two files, three responses of the first to two of the second: places 0 1 0 1 0 | 0 1 0 1 0, by .6 .4;
// .2 .8; .8 .2; .4 .6; 1 0.
TEST_F(Curricula, AMixOfTwoFilesKeepsItsRatioAndTheirOrder) {
  const auto rows = test::random_rollouts(16, 37, 3);
  const Path first = world.write_bank("first.jsonl", {rows.begin(), rows.begin() + 10});
  const Path second = world.write_bank("second.jsonl", {rows.begin() + 10, rows.end()});
  const TrainConfig config =
      world.config("run", {"curriculum.stages=[{source: mix, of: [\"bank:" + first.string() +
                           "\", \"bank:" + second.string() + "\"], ratio: [3, 2]}]"});
  const auto directory = io::RunDirectory::create(config.output, "test: 1\n", "{}\n");
  const ModelPair models = load_models(config);
  const QuerySet queries;
  LocalRun local(config, directory, models, queries);
  const Source mix = make_stages(config)[0].source;
  const auto ids = [&](const SuppliedRollouts& supplied) {
    std::vector<size_t> result;
    for (const Rollout& rollout : supplied.rollouts)
      for (size_t i = 0; i < rows.size(); ++i)
        if (rows[i].query_id == rollout.query_id && rows[i].sample == rollout.sample) result.push_back(i);
    return result;
  };
  const auto one = local.supply.take(mix, 1, 0);
  EXPECT_THAT(one.source, ElementsAre(0, 1, 0, 1, 0, 0, 1, 0, 1, 0));
  EXPECT_THAT(ids(one), ElementsAre(0, 10, 1, 11, 2, 3, 12, 4, 13, 5));
  // The files go on where they were, each by itself; the second one starts over behind its six rows.
  EXPECT_THAT(ids(local.supply.take(mix, 2, 3)), ElementsAre(6, 14, 7, 15, 8, 9, 10, 0, 11, 1));
  EXPECT_EQ(local.supply.state().rounds, 2u);
  EXPECT_EQ(local.supply.state().consumed, 20u);
}

TEST_F(Curricula, AnAnnealedMixGoesFromOneSourceToTheOther) {
  const auto metrics = run("[{source: mix, of: [current, initial], ratio: [1, 0], ratio_to: [0, 1]}]", 3);
  EXPECT_THAT(sources_of(metrics),
              ElementsAre("mix(1 current,0 initial)", "mix(current,initial)", "mix(0 current,1 initial)"));
  EXPECT_EQ(metrics.iterations[0].rollout_policy_age, 0);
  EXPECT_EQ(metrics.iterations[1].rollout_policy_age, 1.5);
  EXPECT_EQ(metrics.iterations[2].rollout_policy_age, 6);
  EXPECT_EQ(io::read_rollouts(world.path("run") / "rollouts" / "iter-0002.jsonl").size(), 5u);
  EXPECT_FALSE(std::filesystem::exists(world.path("run") / "rollouts" / "iter-0003.jsonl")) << "no place";
  EXPECT_EQ(budget_of(metrics), (Budget{30, 9, 6, 3}));
}

TEST_F(Curricula, AContinuationRunsItsOwnStages) {
  run("[{source: current}]", 2);
  const Path checkpoint = world.path("run") / "checkpoints" / "step-00006";
  const auto metrics = test::run_to_the_end(world.config(
      "next",
      {"train.iterations=2", "curriculum.stages=[{source: initial, iterations: 1}, {source: current}]",
       "continue_from=" + checkpoint.string()}));
  EXPECT_THAT(sources_of(metrics), ElementsAre("initial", "current"));
  EXPECT_EQ(metrics.iterations[0].policy_step, 6u);
  EXPECT_EQ(metrics.iterations[0].rollout_policy_age,
            6);  // the bank is that of the student before all training
  EXPECT_EQ(budget_of(metrics), (Budget{40, 12, 6, 4})) << "those of both runs";
}

// Steps of a continuation are counted from the first step of the run that it continues.
TEST_F(Curricula, AContinuationFreezesABankOfItsOwn) {
  run("[{source: current}]", 2);
  const Path checkpoint = world.path("run") / "checkpoints" / "step-00006";
  const auto metrics = test::run_to_the_end(
      world.config("next", {"train.iterations=2",
                            "curriculum.stages=[{source: current, iterations: 1}, {source: recent, step: 9}]",
                            "continue_from=" + checkpoint.string()}));
  EXPECT_THAT(sources_of(metrics), ElementsAre("current", "recent:9"));
}

TEST_F(Curricula, BanksOfDifferentSizeAndTrainingRoundsShareNoResponses) {
  run("[{source: current, iterations: 1}, {source: initial}]", 2);
  test::run_to_the_end(world.config("larger", {"train.iterations=1", "curriculum.stages=[{source: initial}]",
                                               "curriculum.bank.responses=40"}));
  const auto round = io::read_rollouts(world.path("run") / "rollouts" / "iter-0001.jsonl");
  const auto bank = io::read_rollouts(world.path("run") / "banks" / "initial.jsonl");
  const auto larger = io::read_rollouts(world.path("larger") / "banks" / "initial.jsonl");
  ASSERT_LT(bank.size(), larger.size());
  std::vector<std::vector<Token>> seen[3];  // long enough not to be equal by chance
  for (size_t i = 0; i < round.size(); ++i) {
    ASSERT_EQ(round[i].query_id, bank[i].query_id);
    ASSERT_EQ(round[i].query_id, larger[i].query_id);
    if (std::min({round[i].response_ids.size(), bank[i].response_ids.size(), larger[i].response_ids.size()}) <
        4)
      continue;
    seen[0].push_back(round[i].response_ids);
    seen[1].push_back(bank[i].response_ids);
    seen[2].push_back(larger[i].response_ids);
  }
  ASSERT_GT(seen[0].size(), 2u);
  for (size_t i = 0; i < seen[0].size(); ++i) {
    EXPECT_NE(seen[0][i], seen[1][i]);
    EXPECT_NE(seen[0][i], seen[2][i]);
    EXPECT_NE(seen[1][i], seen[2][i]);
  }
}

TEST_F(Curricula, ATriggerWithOneMinibatchSaysWhyThereIsNoComparison) {
  const auto metrics =
      run("[{source: current, until: trigger}, {source: initial}]", 3, {"train.minibatch=10"});
  EXPECT_THAT(sources_of(metrics), Each("current"));
  for (const IterationRecord& record : metrics.iterations) {
    EXPECT_FALSE(record.trigger.distance.has_value());
    EXPECT_THAT(record.trigger.note, HasSubstr("minibatch"));
  }
}

TEST_F(Curricula, EveryQueryIsUsedEquallyOftenAndResponsesAreNew) {
  run("[{source: current}]", 3);
  std::map<std::string, int> count;
  std::set<std::pair<std::string, uint32_t>> seen;
  for (const char* name : {"iter-0001.jsonl", "iter-0002.jsonl", "iter-0003.jsonl"})
    for (const Rollout& rollout : io::read_rollouts(world.path("run") / "rollouts" / name)) {
      ++count[rollout.query_id];
      EXPECT_TRUE(seen.insert({rollout.query_id, rollout.sample}).second);
    }
  for (const auto& [query, times] : count) EXPECT_EQ(times, 5) << query;
}

TEST_F(Curricula, RefuseABankOfAnotherModelInTheRunsPlace) {
  set_log_level(LogLevel::quiet);
  run("[{source: initial}]", 1);
  const TrainConfig other =
      world.config("other", {"train.iterations=1", "curriculum.stages=[{source: initial}]",
                             "student=" + world.path("teacher").string()});
  std::filesystem::create_directories(world.path("other") / "banks");
  for (const char* name : {"initial.jsonl", "initial.meta.json"})
    std::filesystem::copy(world.path("run") / "banks" / name, world.path("other") / "banks" / name);
  write_file_atomically(world.path("other") / "config.yaml", config_to_yaml(other, true));
  EXPECT_THAT(error_of([&] { resume_run(world.path("other"), "test"); }),
              HasSubstr("made in another way: model_fingerprint"));
}

TEST_F(Curricula, RefuseABankWithForeignIdsOrTooFewRows) {
  set_log_level(LogLevel::quiet);
  auto rollouts = test::random_rollouts(12, 37, 3);
  const Path small = world.write_bank("small.jsonl", {rollouts.begin(), rollouts.begin() + 5});
  rollouts[7].response_ids[0] = 37;
  const Path foreign = world.write_bank("foreign.jsonl", rollouts);
  const auto error = [&](const Path& bank) {
    return error_of([&] {
      start_run(world.config(bank.stem().string(),
                             {"train.iterations=1",
                              "curriculum.stages=[{source: bank, path: " + bank.string() + "}]"}),
                "test");
    });
  };
  EXPECT_THAT(error(foreign), testing::AllOf(HasSubstr("foreign.jsonl:8"), HasSubstr("37")));
  EXPECT_THAT(error(small), testing::AllOf(HasSubstr("small.jsonl"), HasSubstr("5")));
  EXPECT_THAT(error(world.path("absent.jsonl")), HasSubstr("absent.jsonl"));
}

}  // namespace
}  // namespace ropd::train
