// A trainer on doubles of the three seams that write down what they are asked for; no model is anywhere.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "support/test_data.h"
#include "train/trainer.h"

namespace ropd::test {

using Diary = std::vector<std::string>;

// Answers every request with one token, told by its sample.
class GeneratorDouble final : public rollout::Generator {
 public:
  explicit GeneratorDouble(Diary& diary) : diary_(diary) {
    config_.eos_ids = {0};
    config_.max_response_tokens = 4;
  }
  void replace_weights(const rollout::Policy& policy) override {
    diary_.push_back("weights of step " + std::to_string(policy.step));
    step_ = policy.step;
  }
  uint64_t policy_step() const override { return step_; }
  std::string fingerprint(const rollout::Policy& policy) const override {
    return "policy " + std::to_string(policy.step);
  }
  void check(std::span<const rollout::Request>) const override {}
  rollout::RunSummary run(std::span<const rollout::Request> requests,
                          const rollout::RunHooks& hooks) override {
    diary_.push_back("sample " + std::to_string(requests.size()));
    if (on_run) on_run();
    if (stop_requested()) return {.was_stopped = true};
    for (size_t i = 0; i < requests.size(); ++i)
      hooks.on_done(i, {.query_id = requests[i].query_id,
                        .sample = requests[i].sample,
                        .prompt_ids = *requests[i].prompt,
                        .response_ids = {static_cast<Token>(1 + requests[i].sample % 7)},
                        .policy_step = step_,
                        .seed = requests[i].stream.seed,
                        .text = std::nullopt});
    return {.num_done = requests.size()};
  }
  bool is_exact(model::Precision) const override { return false; }
  const rollout::EngineConfig& config() const override { return config_; }
  model::Precision precision() const override { return model::Precision::f32; }
  int64_t vocab_size() const override { return 9; }
  void release() override { diary_.push_back("release"); }

  std::function<void()> on_run;  // while it samples

 private:
  Diary& diary_;
  rollout::EngineConfig config_;
  uint64_t step_ = 0;
};

// One candidate a position, the teacher twice as sure of it.
class ScorerDouble final : public distill::Scorer {
 public:
  explicit ScorerDouble(Diary& diary) : diary_(diary) {}
  distill::Scoring score(std::span<const Rollout> rollouts, std::vector<Scores> sampled) override {
    EXPECT_TRUE(sampled.empty());
    diary_.push_back("score " + std::to_string(rollouts.size()));
    distill::Scoring scoring{.scores = {}, .student_seconds = 3, .teacher_seconds = 5};
    for (const Rollout& rollout : rollouts)
      scoring.scores.push_back({.query_id = rollout.query_id,
                                .sample = rollout.sample,
                                .top_k = 1,
                                .candidates = {4},
                                .student_logprobs = {-2},
                                .teacher_logprobs = {-1},
                                .sampled_logprobs = {-2},
                                .teacher_sampled_logprobs = {-1},
                                .student_entropy = {0.5},
                                .is_aligned = {},
                                .overlap = {1}});
    return scoring;
  }
  distill::TeacherRows teacher_rows(std::span<const distill::TrainingItem>) override { return {}; }

 private:
  Diary& diary_;
};

// A model of one number, whose gradient is that of the minibatch's size.
class LearnerDouble final : public train::Learner {
 public:
  explicit LearnerDouble(Diary& diary) : diary_(diary) {}
  train::MinibatchGradient gradient(std::span<const distill::Shard> minibatch,
                                    const distill::GradientConfig& config, distill::Scorer&) override {
    EXPECT_EQ(config.old_is_current, old_is_current);
    train::MinibatchGradient result{.norm = 2};
    for (const distill::Shard& shard : minibatch)
      for (const distill::Microbatch& microbatch : shard) {
        ++result.microbatches;
        for (const auto& item : microbatch) {
          EXPECT_EQ(item.supervision->coefficients, std::vector<float>{1.0f});  // 1 * (-1 - -2)
          result.sums.weighted_loss += item.token_weight;
          ++result.sums.tokens;
        }
      }
    if (++gradients_ == spoilt) result.not_finite = "spoilt";
    diary_.push_back("gradient of " + std::to_string(result.sums.tokens));
    return result;
  }
  train::MinibatchGradient gradient(std::span<const distill::SupervisedMicrobatch>) override { return {}; }
  void observe(double scale) override { diary_.push_back("observe " + std::to_string(scale).substr(0, 4)); }
  curriculum::Comparison compare() override {
    diary_.push_back("compare");
    return {.minibatches = 3, .within = 1, .distance = 1, .noise = 2, .note = ""};
  }
  void update(double learning_rate, double gradient_scale) override {
    diary_.push_back("update " + std::to_string(gradient_scale).substr(0, 4));
    value += learning_rate;
  }
  train::LearnerState save(const Path& folder, const std::string&) const override {
    if (on_save) on_save();
    write_file_atomically(folder / "value", std::to_string(value));
    return {.updates = 7};
  }
  void restore(const Path& folder, const train::LearnerState& state) override {
    value = std::stod(read_file(folder / "value"));
    restored = state;
  }
  uint64_t saved_bytes() const override { return 8; }

  double value = 0;
  bool old_is_current = false;  // as it must be told
  int spoilt = 0;               // which gradient is not finite, from 1
  std::function<void()> on_save;
  train::LearnerState restored;

 private:
  Diary& diary_;
  int gradients_ = 0;
};

// A trainer on doubles; no model is anywhere.
struct StagedWorld {
  Diary diary;
  test::TemporaryDirectory folder;
  train::TrainConfig config;
  io::RunDirectory directory;
  train::QuerySet queries;
  GeneratorDouble generator{diary};
  ScorerDouble scorer{diary};
  LearnerDouble learner{diary};
  train::RolloutSupply supply;
  train::Trainer trainer;
  explicit StagedWorld(std::vector<std::string> overrides, train::TrainerHooks hooks = {})
      : config(
            train::parse_train_config("student: none\nteacher: none\noutput: " + (folder / "run").string() +
                                          "\ndata: {queries: none}\ntrain: {iterations: 4, "
                                          "responses_per_iteration: 10, minibatch: 4, learning_rate: 0.5}\n"
                                          "trigger: {persistence: 1}\n",
                                      "test", overrides)),
        directory(io::RunDirectory::create(config.output, "test: 1\n", "{}\n")),
        queries(
            {.queries = {{{.id = "q"}, std::make_shared<const std::vector<Token>>(std::vector<Token>{8})}},
             .num_in_file = 1,
             .num_too_long = 0,
             .fingerprint = "f"}),
        supply(config, directory, queries, generator, {}),
        trainer(config, {supply, scorer, learner}, {}, std::move(hooks)) {}
};

}  // namespace ropd::test
