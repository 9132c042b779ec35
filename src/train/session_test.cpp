#include "train/session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ropd_source_directory.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/json.h"
#include "base/stop.h"
#include "base/threads.h"
#include "io/progress_file.h"
#include "io/sample_file.h"
#include "support/chosen_target.h"
#include "support/kill_at_system_call.h"
#include "support/whole_run.h"

namespace ropd::train {
namespace {

using test::error_of;
using test::final_weights;
using testing::HasSubstr;

class Session : public testing::Test {
 protected:
  Session() { set_log_level(LogLevel::quiet); }
  ~Session() override {
    clear_stop_request();
    set_log_level(LogLevel::info);
  }
  const test::TinyWorld world;

  TrainConfig long_run(const std::string& output, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"train.iterations=12", "trigger.persistence=2"});
    return world.config(output, more);
  }
  std::string uninterrupted(const TrainConfig& config) const {
    start_run(config, "test");
    return final_weights(config);
  }
};

// Everything in the lines that does not measure time.
std::string numbers_of(const io::Metrics& metrics) {
  std::string text;
  for (const IterationRecord& r : metrics.iterations) {
    for (const StepRecord& s : r.steps)
      text +=
          std::to_string(s.step) + " " + std::to_string(s.loss) + " " + std::to_string(s.grad_norm) + "\n";
    text += r.source + " " + std::to_string(r.loss) + " D " +
            std::to_string(r.trigger.distance.value_or(-1)) + " C " + std::to_string(r.consumed) + " M " +
            std::to_string(r.rounds) + " N " + std::to_string(r.queries) + "\n";
  }
  return text;
}

// Runs until `stop` says so after a step, again and again; gives the number of sessions.
int run_in_pieces(const TrainConfig& config, const std::function<bool(const StepRecord&)>& is_stop) {
  int sessions = 0;
  for (RunOutcome outcome = RunOutcome::stopped; outcome == RunOutcome::stopped; ++sessions) {
    clear_stop_request();
    outcome = start_or_resume_run(config, "test", {.on_step = [&](const StepRecord& step) {
                                    if (is_stop(step)) request_stop();
                                  }});
  }
  clear_stop_request();
  return sessions;
}

TEST_F(Session, StopsAndResumesAfterEveryIterationBitForBit) {
  const TrainConfig whole = long_run("whole"), pieces = long_run("pieces");
  const std::string expected = uninterrupted(whole);
  EXPECT_EQ(run_in_pieces(pieces, [](const StepRecord& step) { return step.minibatch == 2; }), 12);
  EXPECT_EQ(final_weights(pieces), expected);
  const auto metrics = io::read_metrics(world.path("pieces") / "metrics.jsonl");
  EXPECT_EQ(numbers_of(metrics), numbers_of(io::read_metrics(world.path("whole") / "metrics.jsonl")));
  EXPECT_TRUE(metrics.iterations.back().trigger.tau.has_value());  // both stages were gone through
  EXPECT_EQ(metrics.iterations.back().source, "initial");
  EXPECT_EQ(metrics.iterations.size(), 12u);
}

TEST_F(Session, StopsAndResumesAfterEveryOptimizationStepBitForBit) {
  const std::string expected = uninterrupted(long_run("whole"));
  const TrainConfig pieces = long_run("pieces", {"checkpoint.every=0"});
  EXPECT_EQ(run_in_pieces(pieces, [](const StepRecord&) { return true; }), 36);
  EXPECT_EQ(final_weights(pieces), expected);
  const auto metrics = io::read_metrics(world.path("pieces") / "metrics.jsonl");
  EXPECT_EQ(numbers_of(metrics), numbers_of(io::read_metrics(world.path("whole") / "metrics.jsonl")));
  for (const IterationRecord& r : metrics.iterations)  // of all three sessions of an iteration
    EXPECT_GE(r.seconds.total,
              r.seconds.rollout + r.seconds.score_student + r.seconds.score_teacher + r.seconds.update);
}

TEST_F(Session, RoundedCheckpointsChangeNoBitOfARun) {
  const auto settings = [](const char* dtype) {
    return std::vector<std::string>{"train.iterations=6", std::string("checkpoint.dtype=") + dtype};
  };
  uninterrupted(world.config("whole", settings("f32")));
  const TrainConfig pieces = world.config("pieces", settings("bf16"));
  EXPECT_EQ(run_in_pieces(pieces, [](const StepRecord& step) { return step.step % 4 == 0; }), 5);
  EXPECT_EQ(numbers_of(io::read_metrics(world.path("pieces") / "metrics.jsonl")),
            numbers_of(io::read_metrics(world.path("whole") / "metrics.jsonl")));
  const auto last = [&](const char* run) { return world.path(run) / "checkpoints/step-00018"; };
  EXPECT_EQ(read_file(last("pieces") / "optimizer.safetensors"),
            read_file(last("whole") / "optimizer.safetensors"));
  EXPECT_NE(final_weights(pieces), test::final_weights(world.config("whole")));
}

TEST_F(Session, AContinuationOfAnotherModelsCheckpointIsRefusedBeforeAnythingIsMade) {
  start_run(world.config("first", {"train.iterations=3"}), "test");
  ModelConfig wider = test::tiny_config(Architecture::qwen3);
  wider.hidden_size *= 2;
  test::write_tiny_directory(world.path("wider"), test::random_parameters(wider, 3));
  const TrainConfig config =
      world.config("second", {"student=" + world.path("wider").string(),
                              "continue_from=" + (world.path("first") / "checkpoints/step-00009").string()});
  EXPECT_THAT(error_of([&] { start_run(config, "test"); }), HasSubstr("another model than expected"));
  EXPECT_FALSE(std::filesystem::exists(world.path("second")));
}

// As a kill behind the rename of a checkpoint leaves it.
TEST_F(Session, FinishesWhatAKilledSaveLeftUndone) {
  const std::vector<std::string> settings = {"train.iterations=3", "checkpoint.keep=1"};
  const std::string expected = uninterrupted(world.config("whole", settings));
  const TrainConfig config = world.config("run", settings);
  const Path checkpoints = world.path("run") / "checkpoints";
  start_run(config, "test", {.on_step = [](const StepRecord& step) {
              if (step.step == 3) request_stop();
            }});
  clear_stop_request();
  std::filesystem::copy(checkpoints / "step-00003", world.path("surplus"),
                        std::filesystem::copy_options::recursive);
  resume_run(config.output, "test", {.on_step = [](const StepRecord& step) {
               if (step.step == 6) request_stop();
             }});
  clear_stop_request();
  std::filesystem::rename(world.path("surplus"), checkpoints / "step-00003");
  write_file_atomically(checkpoints / "LATEST", "step-00003\n");
  EXPECT_EQ(resume_run(config.output, "test",
                       {.on_step =
                            [&](const StepRecord&) {
                              EXPECT_EQ(read_file(checkpoints / "LATEST"), "step-00006\n");
                              EXPECT_FALSE(std::filesystem::exists(checkpoints / "step-00003"));
                            }}),
            RunOutcome::done);
  EXPECT_EQ(final_weights(config), expected);
}

TEST_F(Session, KeepsTheCommandOfEverySession) {
  const TrainConfig config = world.config("run", {"train.iterations=3"});
  start_run(config, "the first command", {.on_step = [](const StepRecord& step) {
              if (step.step == 4) request_stop();
            }});
  clear_stop_request();
  EXPECT_EQ(resume_run(config.output, "the second command"), RunOutcome::done);
  const std::string history = read_file(world.path("run") / "history.jsonl");
  const size_t second = history.find('\n') + 1;
  EXPECT_EQ(parse_json(history.substr(0, second), "history.jsonl").at("command_line"), "the first command");
  const Json line = parse_json(history.substr(second), "history.jsonl");
  EXPECT_EQ(line.at("command_line"), "the second command");
  EXPECT_EQ(line.at("step"), 4);
  EXPECT_EQ(resume_run(config.output, "a third command"), RunOutcome::done);  // nothing was left to do
  EXPECT_EQ(read_file(world.path("run") / "history.jsonl"), history);
}

// state.json as the first version wrote it, around the same learner.
TEST_F(Session, GoesOnWithARunOfTheFirstFormat) {
  const std::string expected = uninterrupted(long_run("whole"));
  const TrainConfig config = long_run("run");
  start_run(config, "test", {.on_step = [](const StepRecord& step) {
              if (step.step == 11) request_stop();
            }});
  clear_stop_request();
  const auto checkpoints = io::list_checkpoints(world.path("run") / "checkpoints");
  const Path newest = checkpoints.back().path;
  Json state = parse_json(read_file(newest / "state.json"), "state.json");
  EXPECT_EQ(state.at("minibatches"), 2);
  state["format"] = 1;
  state["updates"] = state["learner"]["updates"];
  state["curriculum"]["consecutive"] = state["trigger"]["consecutive"];
  state["trigger"] = state["learner"]["statistics"];
  state["first_length_mean"] = 5.0;
  state.erase("learner");
  state.erase("bank_fingerprints");
  const uint64_t step = checkpoints.back().step;
  const Path old = world.path("old");
  std::filesystem::copy(newest, old, std::filesystem::copy_options::recursive);
  write_file_atomically(old / "state.json", state.dump());
  std::filesystem::remove_all(world.path("run") / "checkpoints");
  io::CheckpointStore(world.path("run") / "checkpoints").save(step, {}, [&](const Path& folder) {
    for (const auto& entry : std::filesystem::directory_iterator(old))
      if (entry.path().filename() != "MANIFEST.json")
        std::filesystem::copy(entry.path(), folder / entry.path().filename(),
                              std::filesystem::copy_options::recursive);
  });
  EXPECT_EQ(resume_run(world.path("run"), "test"), RunOutcome::done);
  EXPECT_EQ(final_weights(config), expected);
}

TEST_F(Session, TheLengthAlarmComparesWithTheFirstIterationOfAllSessions) {
  const TrainConfig config = world.config("run", {"train.iterations=6", "alarms.length_factor=0.000001"});
  start_run(config, "test", {.on_step = [](const StepRecord& step) {
              if (step.step == 3) request_stop();
            }});
  clear_stop_request();
  EXPECT_EQ(resume_run(config.output, "test"), RunOutcome::done);
  const auto metrics = io::read_metrics(world.path("run") / "metrics.jsonl");
  ASSERT_EQ(metrics.iterations.size(), 6u);
  std::set<std::string> factors;
  for (const IterationRecord& record : metrics.iterations) {
    const double factor = record.response_length_mean / metrics.iterations[0].response_length_mean;
    factors.insert(fmt::format("{:.1f} times that of the first", factor));
    ASSERT_EQ(record.alarms.size(), 1u);
    EXPECT_THAT(record.alarms[0], HasSubstr(fmt::format("{:.1f} times that of the first", factor)));
  }
  EXPECT_GT(factors.size(), 2u);  // another first iteration would show
}

TEST_F(Session, StopsInsideAnIterationThatScoresEveryMinibatchInEveryOrder) {
  std::set<std::string> endings;
  for (const std::string order : {"recorded", "ranks", "ranks_balanced"}) {
    const std::vector<std::string> settings = {"train.rescore=minibatch",
                                               "train.iterations=3",
                                               "train.shards=2",
                                               "train.order=" + order,
                                               "curriculum.stages=[{source: mix, of: [current, initial]}]",
                                               "train.reduction=source_balanced"};
    const std::string expected = uninterrupted(world.config("whole-" + order, settings));
    const TrainConfig pieces = world.config("pieces-" + order, settings);
    EXPECT_EQ(run_in_pieces(pieces, [](const StepRecord&) { return true; }), 9);
    EXPECT_EQ(final_weights(pieces), expected) << order;
    endings.insert(expected);
  }
  EXPECT_EQ(endings.size(), 3u) << "the orders are three";
}

TEST_F(Session, StopsInsideAnAnnealedMix) {
  const std::vector<std::string> settings = {
      "train.iterations=4", "train.reduction=source_balanced",
      "curriculum.stages=[{source: mix, of: [current, initial], ratio: [3, 1], ratio_to: [0, 1]}]"};
  const std::string expected = uninterrupted(world.config("whole", settings));
  const TrainConfig pieces = world.config("pieces", settings);
  EXPECT_EQ(run_in_pieces(pieces, [](const StepRecord&) { return true; }), 12);
  EXPECT_EQ(final_weights(pieces), expected);
}

TEST_F(Session, TriggersThatDecideAndThatWatchGoOnWhereTheyWere) {
  const std::vector<std::string> settings = {
      "train.iterations=6", "trigger.kind=kl_plateau", "trigger.tolerance=0.5", "trigger.earliest=4",
      "trigger.watched=[{name: paper, persistence: 1}, {name: length, kind: length_plateau, window: 2}]"};
  const TrainConfig whole = world.config("whole", settings), pieces = world.config("pieces", settings);
  const auto expected = test::run_to_the_end(whole);
  EXPECT_TRUE(expected.iterations.back().trigger.tau.has_value());
  run_in_pieces(pieces, [](const StepRecord&) { return true; });
  EXPECT_EQ(final_weights(pieces), final_weights(whole));
  const auto metrics = io::read_metrics(Path(pieces.output) / "metrics.jsonl");
  ASSERT_EQ(metrics.iterations.size(), expected.iterations.size());
  for (size_t i = 0; i < expected.iterations.size(); ++i) {
    EXPECT_EQ(metrics.iterations[i].trigger.tau, expected.iterations[i].trigger.tau);
    EXPECT_EQ(metrics.iterations[i].trigger.watched, expected.iterations[i].trigger.watched);
  }
}

// Where a bank lies is not what it is: a run that goes on elsewhere goes on at the same row.
TEST_F(Session, ABankThatWasMovedGoesOnAtItsRow) {
  const auto rows = test::random_rollouts(40, 37, 9);
  const Path bank = world.write_bank("bank.jsonl", rows), moved = world.write_bank("moved.jsonl", rows);
  const auto stages = [](const Path& path) {
    return "curriculum.stages=[{source: bank, path: " + path.string() + "}]";
  };
  const std::string expected = uninterrupted(world.config("whole", {"train.iterations=4", stages(bank)}));
  const TrainConfig config = world.config("run", {"train.iterations=4", stages(bank)});
  start_run(config, "test", {.on_step = [](const StepRecord& step) {
              if (step.step == 4) request_stop();
            }});
  clear_stop_request();
  std::filesystem::remove(bank);
  ASSERT_EQ(resume_run(config.output, "test", {}, {.overrides = {stages(moved)}}), RunOutcome::done);
  EXPECT_EQ(final_weights(config), expected);
}

// Killed at system calls drawn at random: what lies on the disk between two of them is all a kill can leave.
TEST_F(Session, SurvivesSigkillAtRandomMoments) {
  const std::vector<std::string> settings = {"train.iterations=5", "trigger.persistence=1"};
  const std::string expected = uninterrupted(world.config("whole", settings));
  const TrainConfig config = world.config("killed", settings);
  int kills = 0, finished = 0;
  for (uint64_t attempt = 0; kills < 50 || finished == 0; ++attempt) {
    ASSERT_LT(attempt, 400u);
    const int call = 1 + static_cast<int>(random_bits(1, Purpose::test, {attempt, 0, 0})[0] % 2500);
    const bool was_killed = test::run_until_system_call(
        [&] {
          set_num_threads(1);  // a forked child has no pool of threads
          start_or_resume_run(config, "test");
        },
        call);
    if (was_killed) {
      ++kills;
      continue;
    }
    ++finished;
    ASSERT_EQ(final_weights(config), expected) << "after " << kills << " kills";
    std::filesystem::remove_all(config.output);
  }
  EXPECT_GE(finished, 1);
  RecordProperty("kills", kills);
  RecordProperty("finished_runs", finished);
}

TEST_F(Session, WritesTheTimeAndTheSamePointsToTensorBoard) {
  const auto metrics = test::run_to_the_end(world.config("run", {"train.iterations=3"}));
  ASSERT_EQ(metrics.iterations.size(), 3u);
  double last = 1.5e9;
  for (const IterationRecord& record : metrics.iterations) {
    for (const StepRecord& step : record.steps) {
      EXPECT_GE(step.unix_time, last);
      last = step.unix_time;
    }
    EXPECT_GE(record.unix_time, last);
    EXPECT_GE(record.seconds.total,
              record.seconds.score_student + record.seconds.score_teacher + record.seconds.update);
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(world.path("run") / "tensorboard")) {
    ++files;
    EXPECT_GT(entry.file_size(), 1000u);
    EXPECT_THAT(entry.path().filename().string(), HasSubstr("tfevents"));
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(Session, ARunThatIsDoneStaysAsItIs) {
  const TrainConfig config = world.config("run", {"train.iterations=3"});
  const std::string weights = uninterrupted(config);
  const std::string metrics = read_file(world.path("run") / "metrics.jsonl");
  EXPECT_EQ(resume_run(world.path("run"), "test"), RunOutcome::done);
  EXPECT_EQ(start_or_resume_run(config, "test"), RunOutcome::done);
  EXPECT_EQ(final_weights(config), weights);
  EXPECT_EQ(read_file(world.path("run") / "metrics.jsonl"), metrics);
}

TEST_F(Session, TellsOnlookersWhereItStands) {
  const TrainConfig config = world.config("run", {"train.iterations=3"});
  const auto phase = [&] { return io::read_progress(world.path("run") / "progress.json")->phase; };
  std::vector<uint64_t> iterations;
  const auto outcome = start_run(
      config, "test", {.on_step = [&](const StepRecord& step) {
        iterations.push_back(io::read_progress(world.path("run") / "progress.json")->status.iteration);
        EXPECT_EQ(phase(), io::RunPhase::running);
        if (step.iteration == 2) request_stop();
      }});
  EXPECT_EQ(outcome, RunOutcome::stopped);
  EXPECT_EQ(phase(), io::RunPhase::stopped);
  EXPECT_EQ(iterations.front(), 1u);
  EXPECT_EQ(iterations.back(), 2u);
  clear_stop_request();
  EXPECT_EQ(resume_run(world.path("run"), "test"), RunOutcome::done);
  EXPECT_EQ(phase(), io::RunPhase::finished);
}

TEST_F(Session, KeepsAFewResponsesOfEveryIterationForReading) {
  start_run(world.config("run", {"train.iterations=3", "metrics.samples=2"}), "test");
  for (uint64_t iteration = 1; iteration <= 3; ++iteration) {
    const auto samples =
        io::read_samples(world.path("run") / "samples" / ("iter-000" + std::to_string(iteration) + ".jsonl"));
    ASSERT_EQ(samples.size(), 2u);
    const ResponseSample& first = samples[0];
    EXPECT_EQ(first.iteration, iteration);
    EXPECT_FALSE(first.question.empty());
    ASSERT_FALSE(first.tokens.empty());
    EXPECT_EQ(first.num_tokens, first.tokens.size());
    EXPECT_TRUE(first.tokens[0].chosen.student_logprob && first.tokens[0].chosen.teacher_logprob);
    EXPECT_FALSE(first.tokens[0].candidates.empty());
  }
  start_run(world.config("none", {"train.iterations=3", "metrics.samples=0"}), "test");
  EXPECT_FALSE(std::filesystem::exists(world.path("none") / "samples"));
}

// One iteration may be the whole run: M = 1 of the grid.
TEST_F(Session, SavesStatesThatAreAskedForInsideAnIteration) {
  const TrainConfig config = world.config(
      "run", {"train.iterations=1", "curriculum.stages=[{source: initial}]", "checkpoint.keep_steps=[1, 2]"});
  const std::string expected = uninterrupted(config);
  std::vector<uint64_t> steps;
  for (const auto& entry : io::list_checkpoints(world.path("run") / "checkpoints"))
    steps.push_back(entry.step);
  EXPECT_EQ(steps, (std::vector<uint64_t>{1, 2, 3}));
  std::filesystem::remove_all(world.path("run") / "checkpoints" / "step-00003");
  EXPECT_EQ(resume_run(world.path("run"), "test"), RunOutcome::done);
  EXPECT_EQ(final_weights(config), expected) << "going on from the middle";
}

// LATEST is written last, beside the next iteration; a folder of that name makes it fail.
TEST_F(Session, ACheckpointThatCannotBeWrittenEndsTheRunBeforeTheNextUpdate) {
  const TrainConfig config =
      world.config("run", {"train.iterations=4", "curriculum.stages=[{source: current}]"});
  const Path latest = world.path("run") / "checkpoints" / "LATEST";
  const std::string error = error_of([&] {
    start_run(config, "test", {.on_step = [&](const StepRecord& step) {
                if (step.step != 5) return;
                std::filesystem::remove(latest);
                std::filesystem::create_directory(latest);
              }});
  });
  EXPECT_THAT(error, HasSubstr(latest.string()));
  EXPECT_TRUE(std::filesystem::exists(world.path("run") / "rollouts" / "iter-0003.jsonl")) << "meanwhile";
  const auto metrics = io::read_metrics(world.path("run") / "metrics.jsonl");
  EXPECT_EQ(metrics.iterations.back().step, 6u);
  EXPECT_TRUE(metrics.open_steps.empty());
  std::filesystem::remove(latest);
  EXPECT_EQ(resume_run(world.path("run"), "test"), RunOutcome::done);
  EXPECT_EQ(
      final_weights(config),
      uninterrupted(world.config("whole", {"train.iterations=4", "curriculum.stages=[{source: current}]"})));
}

TEST_F(Session, KeepsTheCheckpointsItWasToldTo) {
  start_run(world.config("run", {"train.iterations=5", "checkpoint.keep=2", "checkpoint.keep_steps=[6]"}),
            "test");
  std::vector<uint64_t> steps;
  for (const auto& entry : io::list_checkpoints(world.path("run") / "checkpoints"))
    steps.push_back(entry.step);
  EXPECT_EQ(steps, (std::vector<uint64_t>{6, 12, 15}));
}

TEST_F(Session, ContinuesWithWeightsAndOptimizerOfACheckpoint) {
  const std::string bank = world.write_bank("bank.jsonl", test::random_rollouts(40, 37, 9)).string();
  const std::string stages = "curriculum.stages=[{source: bank, path: " + bank + "}]";
  const TrainConfig whole = world.config("whole", {"train.iterations=4", stages, "checkpoint.keep=0"});
  const std::string expected = uninterrupted(whole);
  const Path middle = world.path("whole") / "checkpoints" / "step-00006";
  ASSERT_TRUE(std::filesystem::exists(middle));
  // The second half of the bank, as the whole run met it.
  auto second_half = io::read_rollouts(bank);
  second_half.erase(second_half.begin(), second_half.begin() + 20);
  const std::string rest = world.write_bank("rest.jsonl", second_half).string();
  const TrainConfig half = world.config("half", {"train.iterations=2", "continue_from=" + middle.string(),
                                                 "curriculum.stages=[{source: bank, path: " + rest + "}]"});
  const auto metrics = test::run_to_the_end(half);
  EXPECT_EQ(final_weights(half), expected);
  EXPECT_EQ(metrics.iterations.front().policy_step, 6u);
  EXPECT_EQ(metrics.iterations.back().step, 12u);
  EXPECT_EQ(metrics.iterations.back().consumed, 40u);
  // Other than starting anew from those weights: AdamW's moments count.
  const TrainConfig fresh =
      world.config("fresh", {"train.iterations=2", "student=" + (middle / "model").string(),
                             "curriculum.stages=[{source: bank, path: " + rest + "}]"});
  EXPECT_NE(uninterrupted(fresh), expected);
}

// The request counter goes on, and the draws of a round depend on its step: nothing shows where a run was
// continued.
TEST_F(Session, AContinuationOnCurrentRolloutsEqualsARunThatDidNotEnd) {
  const TrainConfig whole = world.config(
      "whole", {"train.iterations=4", "curriculum.stages=[{source: current}]", "checkpoint.keep=0"});
  const std::string expected = uninterrupted(whole);
  const Path middle = world.path("whole") / "checkpoints" / "step-00006";
  const TrainConfig half = world.config(
      "half",
      {"train.iterations=2", "curriculum.stages=[{source: current}]", "continue_from=" + middle.string()});
  const auto metrics = test::run_to_the_end(half);
  EXPECT_EQ(final_weights(half), expected);
  EXPECT_EQ(read_file(world.path("half") / "rollouts" / "iter-0001.jsonl"),
            read_file(world.path("whole") / "rollouts" / "iter-0003.jsonl"));
  const IterationRecord& last = metrics.iterations.back();
  EXPECT_EQ(last.consumed, 40u);
  EXPECT_EQ(last.queries, 6u);
  EXPECT_EQ(last.rounds, 4u);
}

// --- bad input ---

void flip_byte(const Path& path, size_t from_end) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-static_cast<std::streamoff>(from_end), std::ios::end);
  const auto place = file.tellg();
  const char byte = static_cast<char>(file.get());
  file.seekp(place);
  file.put(static_cast<char>(byte ^ 1));
}

TEST_F(Session, RefusesAFolderThatHoldsAnotherRun) {
  start_run(world.config("run", {"train.iterations=3"}), "test");
  const TrainConfig other = world.config("run", {"train.iterations=4"});
  EXPECT_THAT(error_of([&] { start_or_resume_run(other, "test"); }), HasSubstr("holds another run"));
  EXPECT_THAT(error_of([&] { start_run(other, "test"); }), HasSubstr("resume"));
}

TEST_F(Session, FallsBackToTheOlderCheckpointWhenAByteFlipped) {
  const std::string expected = uninterrupted(world.config("whole", {"train.iterations=3"}));
  const TrainConfig config = world.config("run", {"train.iterations=3"});
  start_or_resume_run(config, "test", {.on_step = [](const StepRecord& step) {
                        if (step.step == 6) request_stop();
                      }});
  clear_stop_request();
  for (const char* name : {"model/model.safetensors", "optimizer.safetensors", "state.json"})
    flip_byte(world.path("run") / "checkpoints" / "step-00006" / name, 3);
  set_log_level(LogLevel::warnings);
  testing::internal::CaptureStderr();
  EXPECT_EQ(resume_run(world.path("run"), "test"), RunOutcome::done);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("step-00006"));
  EXPECT_EQ(final_weights(config), expected);
  EXPECT_TRUE(std::filesystem::exists(world.path("run") / "metrics.discarded.jsonl"));
}

TEST_F(Session, RefusesToContinueFromADamagedCheckpoint) {
  start_run(world.config("run", {"train.iterations=3"}), "test");
  const Path checkpoint = world.path("run") / "checkpoints" / "step-00009";
  flip_byte(checkpoint / "optimizer.safetensors", 3);
  const TrainConfig next =
      world.config("next", {"train.iterations=3", "continue_from=" + checkpoint.string()});
  EXPECT_THAT(error_of([&] { start_run(next, "test"); }), HasSubstr("optimizer.safetensors"));
}

TEST_F(Session, RefusesADatasetThatChangedSinceTheRunBegan) {
  const TrainConfig config = world.config("run", {"train.iterations=4"});
  start_or_resume_run(config, "test", {.on_step = [](const StepRecord& step) {
                        if (step.step == 3) request_stop();
                      }});
  clear_stop_request();
  world.write_queries(6, "x");
  EXPECT_THAT(error_of([&] { resume_run(world.path("run"), "test"); }),
              testing::AllOf(HasSubstr("queries ("), HasSubstr("not what the run began with"),
                             HasSubstr("start a new run")));
}

// A kill behind the bank and before the first checkpoint leaves nothing but the bank to compare with.
TEST_F(Session, RefusesADatasetThatChangedSinceTheInitialBankWasMade) {
  const std::string expected = uninterrupted(world.config("whole", {"train.iterations=3"}));
  const TrainConfig config = world.config("run", {"train.iterations=3"});
  start_or_resume_run(config, "test", {.on_step = [](const StepRecord&) { request_stop(); }});
  clear_stop_request();
  std::filesystem::remove_all(world.path("run") / "checkpoints");
  std::filesystem::remove_all(world.path("run") / "rollouts");
  std::filesystem::remove(world.path("run") / "metrics.jsonl");
  ASSERT_TRUE(std::filesystem::exists(world.path("run") / "banks" / "initial.jsonl"));
  world.write_queries(6, "x");
  EXPECT_THAT(error_of([&] { resume_run(world.path("run"), "test"); }), HasSubstr("queries ("));
  // and in a run of an earlier version, which has no list of its inputs:
  std::filesystem::rename(world.path("run") / "inputs.json", world.path("inputs.json"));
  EXPECT_THAT(error_of([&] { resume_run(world.path("run"), "test"); }),
              testing::AllOf(HasSubstr("initial.jsonl"), HasSubstr("requests_fingerprint"),
                             HasSubstr("queries, student or settings changed"), HasSubstr("remove")));
  std::filesystem::rename(world.path("inputs.json"), world.path("run") / "inputs.json");
  world.write_queries(6);
  EXPECT_EQ(resume_run(world.path("run"), "test"), RunOutcome::done);
  EXPECT_EQ(final_weights(config), expected);
}

TEST_F(Session, RefusesATeacherThatChangedSinceTheRunBegan) {
  const TrainConfig config = world.config("run", {"train.iterations=4"});
  start_or_resume_run(config, "test", {.on_step = [](const StepRecord& step) {
                        if (step.step == 3) request_stop();
                      }});
  clear_stop_request();
  std::filesystem::remove_all(world.path("teacher"));
  test::write_tiny_directory(world.path("teacher"),
                             test::random_parameters(test::tiny_config(Architecture::qwen3), 77));
  EXPECT_THAT(error_of([&] { resume_run(world.path("run"), "test"); }),
              testing::AllOf(HasSubstr("teacher ("), HasSubstr("not what the run began with")));
}

TEST_F(Session, RefusesToResumeWhatIsNoRun) {
  EXPECT_THAT(error_of([&] { resume_run(world.path("student"), "test"); }), HasSubstr("student"));
}

TEST_F(Session, BitsDependOnShardsButNeverOnThreads) {
  std::set<std::string> of_shards;
  for (const char* shards : {"1", "2", "8"}) {
    const auto trained = [&](int threads) {
      set_num_threads(threads);
      const std::string name = std::string(shards) + "-" + std::to_string(threads);
      const std::string weights =
          uninterrupted(world.config(name, {"train.iterations=3", std::string("train.shards=") + shards}));
      set_num_threads(1);
      return weights;
    };
    const std::string one = trained(1);
    for (const int threads : {2, 3, 7, 16, 64})
      EXPECT_EQ(trained(threads), one) << threads << ", shards " << shards;
    of_shards.insert(one);
  }
  EXPECT_EQ(of_shards.size(), 3u);
}

TEST_F(Session, ARunOfAnEarlierVersionGoesOnWithOneShard) {
  const auto settings = [&](const char* output) { return world.config(output, {"train.iterations=3"}); };
  const std::string expected = uninterrupted(settings("whole"));
  const TrainConfig config = settings("older");
  start_run(config, "test", {.on_step = [](const StepRecord& step) {
              if (step.step == 4) request_stop();
            }});
  clear_stop_request();
  const Path file = Path(config.output) / "config.yaml";
  std::istringstream lines(read_file(file));
  std::string without;
  for (std::string line; std::getline(lines, line);)
    if (line.find("shards:") == std::string::npos && line.find("dtype:") == std::string::npos)
      without += line + "\n";
  ASSERT_NE(without, read_file(file));
  write_file_atomically(file, without);
  std::filesystem::remove(Path(config.output) / "inputs.json");  // that version knew no such file
  EXPECT_EQ(load_run_config(file).train.shards, 1u);
  EXPECT_EQ(load_run_config(file).checkpoint.dtype.value, DType::f32);
  const auto with_balancing = [&](const std::string& value) {
    std::string text = without;
    text.insert(text.find("train:") + 6, "\n  length_balanced: " + value);
    write_file_atomically(file, text);
  };
  with_balancing("true");
  EXPECT_THAT(error_of([&] { resume_run(config.output, "test"); }),
              HasSubstr("train.length_balanced is true"));
  with_balancing("false");
  ASSERT_EQ(resume_run(config.output, "test"), RunOutcome::done);
  EXPECT_EQ(final_weights(config), expected);
}

// --- golden runs ---

std::string hex(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

std::string golden_text(const io::Metrics& metrics, const std::string& precision) {
  std::string text = "# Tiny R-OPD run (train/session_test.cpp), " + precision +
                     " with fused multiply-add: hexadecimal floats.\n";
  const auto optional = [](const std::optional<double>& value) {
    return value ? hex(*value) : std::string("-");
  };
  for (const IterationRecord& r : metrics.iterations) {
    for (const StepRecord& s : r.steps)
      text +=
          "step " + std::to_string(s.step) + " loss " + hex(s.loss) + " grad_norm " + hex(s.grad_norm) + "\n";
    text += "iteration " + std::to_string(r.iteration) + " source " + r.source + " D " +
            optional(r.trigger.distance) + " V " + optional(r.trigger.noise) + " tau " +
            (r.trigger.tau ? std::to_string(*r.trigger.tau) : std::string("-")) + "\n";
  }
  return text;
}

// The numbers in tests/golden/`name`, after they were written where that is asked for.
std::string golden_numbers(const std::string& name, const std::string& found) {
  const Path path = Path(ROPD_SOURCE_DIR) / "tests" / "golden" / name;
  if (std::getenv("ROPD_WRITE_GOLDEN")) write_file_atomically(path, found);
  return read_file(path);
}

constexpr const char* kNumbersChanged =
    "the numbers of training changed; if that is meant, run with ROPD_WRITE_GOLDEN=1 and say why in "
    "docs/log.md";

TEST_F(Session, ReproducesTheGoldenRun) {
  const std::string found =
      golden_text(test::run_to_the_end(world.config(
                      "run", {"train.iterations=12", "train.shards=2", "trigger.persistence=1"})),
                  "f32");
  const std::string expected = golden_numbers("tiny_run_losses.txt", found);
  if (__builtin_cpu_supports("fma")) {
    EXPECT_EQ(found, expected) << kNumbersChanged;
    return;
  }
  std::istringstream a(found), b(expected);
  for (std::string x, y; a >> x && b >> y;) {
    if (x.find("0x") == std::string::npos) {
      EXPECT_EQ(x, y);
    } else {
      EXPECT_NEAR(std::strtod(x.c_str(), nullptr), std::strtod(y.c_str(), nullptr), 1e-5);
    }
  }
}

// Native bf16 products too: they are the same chains (kernels/pair_packing.h).
TEST_F(Session, ReproducesTheGoldenRunInBf16OnEveryInstructionSet) {
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "without fused multiply-adds numbers are others";
  const auto run = [&](const std::string& name) {
    return golden_text(
        test::run_to_the_end(world.config(
            name, {"train.iterations=6", "train.shards=2", "trigger.persistence=1", "rollout.precision=bf16",
                   "train.precision=bf16", "train.teacher_precision=bf16"})),
        "bf16");
  };
  const std::string found = run("own");
  EXPECT_EQ(found, golden_numbers("tiny_run_bf16_losses.txt", found)) << kNumbersChanged;
  int tried = 0;
  for (const int64_t target : {HWY_AVX2, HWY_AVX3}) {
    if ((hwy::SupportedTargets() & target) == 0) continue;
    const test::ChosenTarget chosen(target);
    EXPECT_EQ(run("as-" + std::to_string(target)), found) << hwy::TargetName(target);
    ++tried;
  }
  EXPECT_GT(tried, 0);
}

}  // namespace
}  // namespace ropd::train
