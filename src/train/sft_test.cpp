#include "train/sft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "support/tiny_world.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::HasSubstr;

// Example `index`: a run of letters that follow each other, so that there is something to learn.
SftExample counting(uint64_t index, double) {
  SftExample example;
  const Token first = static_cast<Token>(index * 7 % 20);
  example.prompt_ids = {first};
  for (Token t = 1; t < 6; ++t) example.response_ids.push_back(first + t);
  example.response_ids.push_back(test::kTinyEnd);
  example.loss_weights.assign(example.response_ids.size(), 1.0f);
  return example;
}

SftConfig settings() {
  SftConfig config;
  config.batch_tokens = 56;
  config.microbatch_tokens = 20;
  config.learning_rate = 0.02;
  config.weight_decay = 0;
  return config;
}

model::Parameters start() { return test::random_parameters(test::tiny_config(Architecture::qwen3), 8); }

TEST(Sft, TheScheduleRisesAndFollowsACosine) {
  SftConfig config;
  config.learning_rate = 1.0;
  config.final_learning_rate = 0.2;
  config.warmup_steps = 4;
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 0, 104), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 3, 104), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 4, 104), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 54, 104), 0.6);  // half way down
  EXPECT_NEAR(learning_rate_at(config, 104, 104), 0.2, 1e-12);
  config.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 0, 10), 1.0);
}

TEST(Sft, RefusesSchedulesThatCannotBe) {
  SftConfig config;
  config.steps = 5;
  config.warmup_steps = 5;
  EXPECT_THAT(error_of([&] { config.validate(); }), HasSubstr("warmup_steps 5"));
  config.warmup_steps = 0;
  config.final_learning_rate = 1;
  EXPECT_THAT(error_of([&] { config.validate(); }), HasSubstr("final_learning_rate"));
}

TEST(Sft, TheFirstLossIsTheMeanCrossEntropyAndItFalls) {
  FullLearner learner(start(), learner_config(settings()));
  const test::NaiveModel naive(learner.parameters());
  SftTrainer trainer(settings(), learner, 60);
  double expected = 0, tokens = 0;
  for (uint64_t i = 0; i < 8; ++i) {  // eight examples of seven tokens fill a batch of 56
    const SftExample example = counting(i, 0);
    std::vector<Token> all = example.prompt_ids;
    all.insert(all.end(), example.response_ids.begin(), example.response_ids.end());
    const auto logits = naive.logits(all);
    for (size_t t = 0; t < example.response_ids.size(); ++t, ++tokens)
      expected -= test::NaiveModel::log_softmax(logits[t])[static_cast<size_t>(example.response_ids[t])];
  }
  const SftProgress first = trainer.step(counting);
  EXPECT_EQ(first.tokens, 56u);
  EXPECT_EQ(first.loss_tokens, 48u);
  EXPECT_NEAR(first.loss, expected / tokens, 1e-5);
  SftProgress last;
  while (trainer.steps_done() < 60) last = trainer.step(counting);
  EXPECT_LT(last.loss, 0.5 * first.loss);
}

TEST(Sft, TokensWithoutWeightGiveNoGradient) {
  FullLearner learner(start(), learner_config(settings()));
  const auto parameters = learner.parameters().values();
  SftTrainer trainer(settings(), learner, 2);
  const auto silent = [](uint64_t index, double progress) {
    SftExample example = counting(index, progress);
    example.loss_weights.assign(example.loss_weights.size(), 0.0f);
    return example;
  };
  const std::vector<float> before(parameters.begin(), parameters.end());
  const SftProgress progress = trainer.step(silent);
  EXPECT_EQ(progress.loss, 0);
  EXPECT_EQ(progress.grad_norm, 0);
  EXPECT_EQ(before, std::vector<float>(parameters.begin(), parameters.end()));
  // Weights on a part: the others are only context, and the mean is over weights.
  const auto partly = [](uint64_t index, double p) {
    SftExample example = counting(index, p);
    for (size_t t = 0; t < 3; ++t) example.loss_weights[t] = 0;
    return example;
  };
  EXPECT_EQ(trainer.step(partly).loss_tokens, 24u);
}

TEST(Sft, PackingDoesNotChangeTheLoss) {
  SftConfig one = settings(), many = settings();
  one.microbatch_tokens = 1000;
  many.microbatch_tokens = 1;
  FullLearner a(start(), learner_config(one)), b(start(), learner_config(many));
  SftTrainer whole(one, a, 5), split(many, b, 5);
  const SftProgress x = whole.step(counting), y = split.step(counting);
  EXPECT_NEAR(x.loss, y.loss, 1e-6);
  EXPECT_NEAR(x.grad_norm, y.grad_norm, 1e-5);
}

TEST(Sft, StopsAndResumesBitForBit) {
  set_log_level(LogLevel::quiet);
  const test::TinyWorld world;
  SftConfig config = settings();
  config.model = world.path("student").string();
  config.checkpoint_every = 3;
  config.output = world.path("whole").string();
  ASSERT_EQ(run_sft(config, counting, 8, start), RunOutcome::done);
  const std::string expected = sha256_file(world.path("whole") / "model" / "model.safetensors");
  const std::string metrics = read_file(world.path("whole") / "metrics.jsonl");

  config.output = world.path("pieces").string();
  int sessions = 0;
  for (RunOutcome outcome = RunOutcome::stopped; outcome == RunOutcome::stopped; ++sessions) {
    clear_stop_request();
    const auto stopping = [](uint64_t index, double progress) {
      if (index % 16 == 15) request_stop();  // in every second step
      return counting(index, progress);
    };
    outcome = run_sft(config, stopping, 8, start);
    if (outcome == RunOutcome::stopped)  // what a power cut may leave behind the lines of the checkpoint
      std::ofstream(world.path("pieces") / "metrics.jsonl", std::ios::app)
          << std::string(9, '\0') << "\n{\"st";
  }
  clear_stop_request();
  EXPECT_EQ(sessions, 4);
  EXPECT_EQ(sha256_file(world.path("pieces") / "model" / "model.safetensors"), expected);
  EXPECT_EQ(read_file(world.path("pieces") / "metrics.jsonl"), metrics);
  EXPECT_EQ(run_sft(config, counting, 8, start), RunOutcome::done);  // done already
  config.learning_rate = 0.5;
  EXPECT_THAT(error_of([&] { run_sft(config, counting, 8, start); }), HasSubstr("holds another run"));
  set_log_level(LogLevel::info);
}

class StoppedSft : public testing::Test {
 protected:
  StoppedSft() {
    set_log_level(LogLevel::quiet);
    config.model = world.path("student").string();
    config.output = world.path("run").string();
    config.checkpoint_every = 1;
    config.checkpoint_keep = 2;
    const auto stopping = [](uint64_t index, double progress) {
      if (index == 30) request_stop();  // in step 4
      return counting(index, progress);
    };
    EXPECT_EQ(run_sft(config, stopping, 8, start), RunOutcome::stopped);
    clear_stop_request();
  }
  ~StoppedSft() override { set_log_level(LogLevel::info); }
  Path path(const std::string& name) const { return world.path("run") / name; }

  const test::TinyWorld world;
  SftConfig config = settings();
};

TEST_F(StoppedSft, LinesLostFromTheMetricsComeBackFromTheCheckpoint) {
  const std::string lines = read_file(path("metrics.jsonl"));
  write_file_atomically(path("metrics.jsonl"), lines.substr(lines.find('\n') + 1));  // without the first
  EXPECT_EQ(run_sft(config, counting, 8, start), RunOutcome::done);
  EXPECT_TRUE(read_file(path("metrics.jsonl")).starts_with(lines));
  EXPECT_TRUE(std::filesystem::exists(path("metrics.discarded.jsonl"))) << "what was found is kept";
}

// As a kill behind the rename of a checkpoint leaves it.
TEST_F(StoppedSft, FinishesWhatAKilledSaveLeftUndone) {
  std::filesystem::copy(path("checkpoints/step-00003"), path("checkpoints/step-00001"),
                        std::filesystem::copy_options::recursive);
  write_file_atomically(path("checkpoints/LATEST"), "step-00003\n");
  request_stop();
  EXPECT_EQ(run_sft(
                config,
                [&](uint64_t index, double progress) {
                  EXPECT_EQ(read_file(path("checkpoints/LATEST")), "step-00004\n");
                  EXPECT_FALSE(std::filesystem::exists(path("checkpoints/step-00001")));
                  return counting(index, progress);
                },
                8, start),
            RunOutcome::stopped);
  clear_stop_request();
}

TEST_F(StoppedSft, AStateThatIsNoneIsRefusedByName) {
  FullLearner learner(start(), learner_config(config));
  SftTrainer trainer(config, learner, 8);
  for (const char* state : {R"([])", R"({"step": "four", "next_example": 32})", R"({"step": 4})",
                            R"({"step": -4, "next_example": 32})"}) {
    write_file_atomically(path("checkpoints/step-00004/state.json"), state);
    EXPECT_THAT(error_of([&] { trainer.restore(path("checkpoints/step-00004")); }),
                testing::AllOf(HasSubstr("state.json: "), HasSubstr("expected a count")))
        << state;
  }
}

TEST(Sft, ARefusedStartLeavesNothing) {
  const test::TinyWorld world;
  SftConfig config = settings();
  config.model = world.path("student").string();
  config.output = world.path("run").string();
  EXPECT_THAT(
      error_of([&] { run_sft(config, counting, 8, []() -> model::Parameters { fail("no model"); }); }),
      HasSubstr("no model"));
  EXPECT_FALSE(std::filesystem::exists(world.path("run")));
  set_log_level(LogLevel::quiet);
  config.learning_rate = 0.01;  // the corrected command
  EXPECT_EQ(run_sft(config, counting, 2, start), RunOutcome::done);
  set_log_level(LogLevel::info);
}

TEST(Sft, AGradientThatIsNotFiniteStopsBeforeTheUpdate) {
  auto parameters = start();
  parameters.values()[0] = std::numeric_limits<float>::infinity();
  FullLearner learner(std::move(parameters), learner_config(settings()));
  SftTrainer trainer(settings(), learner, 5);
  EXPECT_THAT(error_of([&] {
                trainer.step([](uint64_t index, double p) {
                  SftExample example = counting(index, p);
                  example.prompt_ids[0] = 0;
                  return example;
                });
              }),
              testing::AllOf(HasSubstr("step 1"), HasSubstr("not finite"),
                             HasSubstr("may have diverged before"), testing::Not(HasSubstr("intact"))));
}

}  // namespace
}  // namespace ropd::train
