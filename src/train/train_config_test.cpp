#include "train/train_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/training_pass.h"

namespace ropd::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kBase = "student: s\nteacher: t\noutput: o\ndata: {queries: q.jsonl}\n";

std::string error_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  try {
    (void)parse_train_config(kBase + yaml, "run.yaml", overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The interface that was agreed on, word for word.
const std::string kInterface = R"(
student: models/Qwen3-0.6B
teacher: models/Qwen3-4B-Instruct-2507
output: runs/qwen3-0.6b-ropd
seed: 1
data:
  queries: data/dapo_math_17k_en.jsonl   # JSONL or parquet; fields problem/prompt, answer, id; verl rows are read too
  select: {count: 48, seed: 20260829}    # or {first: 14080}, or {ids: [...]}
  order_seed: 0                          # 0 keeps the order; n permutes once before the run
  max_prompt_tokens: 1024                # longer prompts are dropped and counted
  prompt_prefix: ""
  prompt_suffix: " Please reason step by step, and put your final answer within \\boxed{}."
  thinking: false
rollout:
  max_response_tokens: 16384
  temperature: 1.0
  top_p: 1.0
  precision: bf16
  memory_gb: auto
train:
  iterations: 15
  responses_per_iteration: 480
  minibatch: 128
  learning_rate: 1e-6
  betas: [0.9, 0.999]
  epsilon: 1e-8
  weight_decay: 0.01
  grad_clip: 1.0
  precision: f32                         # of matrix products; master weights are always f32
  reduction: dynamic_microbatch          # minibatch_tokens | source_balanced
  microbatch_tokens: 32768
  rescore: iteration                     # minibatch
  order: recorded                        # ranks | ranks_balanced
objective:
  top_k: 16
  weights: student_p                     # teacher_p | uniform
  clip: 0.2
  dual_clip: 3.0
  eos: all                               # none | only
  teacher_temperature: 1.0
curriculum:
  bank: {responses: 2400}                # sampled from the initial student before training, if a stage uses it
  stages:
    - {source: current, until: trigger}
    - {source: initial}
trigger: {persistence: 2}
checkpoint: {every: 1, keep: 3}
continue_from: null                      # a checkpoint: restores weights AND optimizer, then runs the stages above
eval: {suite: null, every: 0}
)";

TEST(TrainConfig, TheInterfaceIsReadAndIsTheDefault) {
  TrainConfig written = parse_train_config(kInterface, "interface.yaml");
  TrainConfig defaults = parse_train_config(kBase, "run.yaml");
  EXPECT_EQ(written.student, "models/Qwen3-0.6B");
  written.student = defaults.student;
  written.teacher = defaults.teacher;
  written.output = defaults.output;
  written.data.queries = defaults.data.queries;
  EXPECT_EQ(config_to_yaml(written), config_to_yaml(defaults));
}

TEST(TrainConfig, TheResolvedConfigReadsBackEqual) {
  const TrainConfig config = parse_train_config(kBase + "train: {learning_rate: 2.5e-6}\n", "run.yaml");
  const std::string resolved = config_to_yaml(config);
  EXPECT_THAT(resolved, HasSubstr("count: 48"));
  EXPECT_EQ(config_to_yaml(parse_train_config(resolved, "config.yaml")), resolved);
}

TEST(TrainConfig, OverridesWin) {
  const std::vector<std::string> overrides = {"train.learning_rate=2e-6",
                                              "curriculum.stages=[{source: initial}]", "data.select.first=8"};
  const TrainConfig config = parse_train_config(kBase, "run.yaml", overrides);
  EXPECT_EQ(config.train.learning_rate, 2e-6);
  ASSERT_EQ(config.curriculum.stages.size(), 1u);
  EXPECT_EQ(config.data.select.first, 8u);
  EXPECT_FALSE(config.data.select.count.has_value());
}

TEST(TrainConfig, UnknownKeysNameTheNearest) {
  EXPECT_THAT(error_of("train: {learning_rat: 1}\n"), HasSubstr("learning_rate"));
  EXPECT_THAT(error_of("train: {minibatch: many}\n"), HasSubstr("train.minibatch"));
  EXPECT_THAT(error_of("train: {reduction: mean}\n"), HasSubstr("source_balanced"));
}

TEST(TrainConfig, RequiresTheModelsAndTheOutput) {
  EXPECT_THROW((void)parse_train_config("teacher: t\noutput: o\ndata: {queries: q}\n", "run.yaml"), Error);
  EXPECT_THROW((void)parse_train_config("student: s\nteacher: t\noutput: o\n", "run.yaml"), Error);
  const TrainConfig replay = parse_train_config(
      "student: s\nteacher: t\noutput: o\ncurriculum: {stages: [{source: bank, path: b.jsonl}]}\n",
      "run.yaml");
  EXPECT_FALSE(needs_sampling(replay));
}

TEST(TrainConfig, RefusesImpossibleCombinations) {
  EXPECT_THAT(error_of("train: {minibatch: 481}\n"), HasSubstr("larger than train.responses_per_iteration"));
  EXPECT_THAT(error_of("train: {betas: [1.0, 0.9]}\n"), HasSubstr("train.betas"));
  EXPECT_THAT(error_of("train: {order: ranks, shards: 7}\n"),
              AllOf(HasSubstr("train.order is ranks: 7 ranks"), HasSubstr("multiples of 7")));
  EXPECT_THAT(error_of("train: {order: ranks_balanced, minibatch: 100}\n"), HasSubstr("train.minibatch 100"));
  EXPECT_THAT(error_of("train: {order: ranks, responses_per_iteration: 484}\n"), HasSubstr("multiples of 8"));
  EXPECT_THAT(error_of("train: {reduction: source_balanced}\n"),
              HasSubstr("no stage of curriculum.stages is a mix"));
  EXPECT_THAT(error_of("curriculum: {bank: {responses: 1000}}\n"),
              HasSubstr("multiple of train.responses_per_iteration 480 (960 or 1440)"));
  EXPECT_THAT(error_of("curriculum: {bank: {responses: 200}}\n"),
              HasSubstr("is 200, expected a multiple of train.responses_per_iteration 480 (480)"));
  for (const char* key : {"rollout: {memory_gb", "train: {activation_memory_gb", "train: {teacher_memory_gb"})
    EXPECT_THAT(error_of(std::string(key) + ": 1e30}\n"),
                HasSubstr("memory_gb is 1e+30, expected auto or at most"))
        << key;
  EXPECT_THAT(error_of("curriculum: {stages: [{source: current, until: trigger}]}\n"),
              HasSubstr("needs a stage after it"));
  EXPECT_THAT(error_of("curriculum: {stages: [{source: recent}]}\n"), HasSubstr("needs step"));
  EXPECT_THAT(error_of("curriculum: {stages: [{source: current, step: 3}]}\n"), HasSubstr("takes no step"));
  EXPECT_THAT(error_of("curriculum: {stages: [{source: bank}]}\n"), HasSubstr("needs path"));
  EXPECT_THAT(error_of("curriculum: {stages: [{source: mix, of: [current]}]}\n"), HasSubstr("two sources"));
  EXPECT_THAT(error_of("curriculum: {stages: [{source: mix, of: [current, mix]}]}\n"),
              HasSubstr("\"mix\" is no source of a mix"));
  EXPECT_THAT(error_of("curriculum: {stages: [{source: mix, of: [current, recent:x]}]}\n"),
              HasSubstr("\"recent:x\" is no source"));
  EXPECT_THAT(error_of("curriculum: {stages: [{source: mix, of: [current, \"bank:\"]}]}\n"),
              HasSubstr("is no source of a mix"));
  EXPECT_THAT(error_of("curriculum: {stages: [{source: mix, of: [current, initial], ratio: [1]}]}\n"),
              HasSubstr("curriculum.stages[0].ratio: has 1 numbers"));
  EXPECT_THAT(error_of("curriculum: {stages: [{source: current, ratio_to: [1]}]}\n"),
              HasSubstr("ratio_to: has 1 numbers, `of` names 0"));
  EXPECT_THAT(error_of("curriculum: {stages: [{source: mix, of: [current, initial], ratio: [2000, 1]}]}\n"),
              HasSubstr("1000"));
  EXPECT_THAT(error_of("curriculum: {stages: []}\n"), HasSubstr("empty"));
  EXPECT_THAT(
      error_of("train: {minibatch: 127}\ncurriculum: {stages: [{source: mix, of: [current, initial]}]}\n"),
      HasSubstr("multiple of 2"));
  EXPECT_EQ(error_of("train: {minibatch: 127}\ncurriculum: {stages: [{source: mix, of: [current, initial], "
                     "ratio: [3, 1]}]}\n"),
            "no error");
  EXPECT_THAT(error_of("objective: {dual_clip: 1.1}\n"), HasSubstr("dual_clip"));
  EXPECT_THAT(error_of("objective: {clip: 0}\n"), HasSubstr("clip"));
  EXPECT_THAT(error_of("objective: {kind: jsd, eos: none}\n"), HasSubstr("objective.eos"));
  EXPECT_THAT(error_of("objective: {kind: tail_bucket, weights: uniform}\n"), HasSubstr("objective.weights"));
  EXPECT_THAT(error_of("objective: {kind: renormalized, top_k: 0}\n"), HasSubstr("needs candidates"));
  EXPECT_THAT(error_of("", {"data.select.first=3", "data.select.count=4"}), HasSubstr("data.select"));
  EXPECT_THAT(error_of("rollout: {temperature: 0}\n"), HasSubstr("rollout.temperature"));
  EXPECT_THAT(error_of("rollout: {top_p: 0}\n"), HasSubstr("rollout.top_p"));
}

TEST(TrainConfig, ErrorsBetweenKeysNameFileAndLine) {  // kBase has four lines
  EXPECT_THAT(error_of("train:\n  minibatch: 481\n"),
              StartsWith("run.yaml:6: train.minibatch is 481, larger"));
  EXPECT_THAT(error_of("train:\n  responses_per_iteration: 100\n"),
              StartsWith("run.yaml:6: train.minibatch is 128"));
  EXPECT_THAT(error_of("", {"train.minibatch=481"}),
              StartsWith("override 'train.minibatch=481': train.minibatch is"));
  EXPECT_THAT(error_of("curriculum:\n  bank:\n    responses: 1000\n"),
              StartsWith("run.yaml:7: curriculum.bank.responses is 1000"));
  EXPECT_THAT(error_of("objective:\n  kind: jsd\n  eos: none\n"),
              StartsWith("run.yaml:7: objective.eos is none"));
  EXPECT_THAT(
      error_of("curriculum:\n  stages:\n    - {source: current, iterations: 3}\n    - {source: recent}\n"),
      StartsWith("run.yaml:8: curriculum.stages[1].step: source recent needs step"));
  EXPECT_THAT(error_of("curriculum:\n  stages:\n    - {source: current}\n    - {source: initial}\n"),
              StartsWith("run.yaml:7: curriculum stage 1 (current): has no end"));
  EXPECT_THAT(error_of("", {"student="}), StartsWith("override 'student=': student: got null"));
  EXPECT_THAT(error_of("", {"output=\"\""}), HasSubstr("output is required"));
}

TEST(TrainConfig, ZeroCandidatesMeanTheSampledToken) {
  const TrainConfig config = parse_train_config(kBase + "objective: {top_k: 0}\n", "run.yaml");
  EXPECT_EQ(config.objective.kind, distill::ObjectiveKind::sampled_token);
}

TEST(TrainConfig, CountsTheStepsOfThePaper) {
  EXPECT_EQ(steps_per_iteration(parse_train_config(kBase, "run.yaml")), 4u);
}

TEST(TrainConfig, TracesHaveTheBudgetOfTheConfigOrTheModels) {
  EXPECT_EQ(activation_budget(parse_train_config(kBase, "run.yaml")), model::kTraceBudgetBytes);
  EXPECT_EQ(activation_budget(parse_train_config(kBase + "train: {activation_memory_gb: 1.5}\n", "run.yaml")),
            1'500'000'000u);
}

TEST(TrainConfig, WarnsOfShardsWithFewerThanTwoResponses) {
  const auto warnings = [](const std::string& settings) {
    return config_warnings(parse_train_config(kBase + "train: {" + settings + "}\n", "run.yaml"));
  };
  EXPECT_THAT(warnings("shards: 48"), IsEmpty());  // the last minibatch has 96
  EXPECT_THAT(warnings("shards: 49"), ElementsAre(HasSubstr("train.shards is 49, but a minibatch has 96")));
  EXPECT_THAT(warnings("shards: 1, minibatch: 1"), IsEmpty());
}

TEST(TrainConfig, MakesTheCurriculaOfThePaper) {
  const auto describe = [](const std::string& stages) {
    return make_curriculum(parse_train_config(kBase + "curriculum: {stages: " + stages + "}\n", "run.yaml"))
        .describe();
  };
  EXPECT_EQ(describe("[{source: current, until: trigger}, {source: initial}]"),
            "current until trigger, then initial");
  EXPECT_EQ(describe("[{source: current, iterations: 10}, {source: recent, step: 40}]"),
            "current x 10, then recent:40");
  EXPECT_EQ(describe("[{source: mix, of: [current, bank], path: b.jsonl}]"), "mix(current,bank:b.jsonl)");
  EXPECT_EQ(describe("[{source: mix, of: [bank:a.jsonl, bank:b.jsonl], ratio: [6, 2]}]"),
            "mix(3 bank:a.jsonl,1 bank:b.jsonl)");
  EXPECT_EQ(describe("[{source: current, iterations: 10}, {source: mix, of: [recent:40, initial], ratio: [1, "
                     "0], ratio_to: [1, 3]}]"),
            "current x 10, then mix(1 recent:40,0 initial) to 1:3");
  EXPECT_EQ(describe("[{source: current, iterations: 5}, {source: initial, iterations: 5}, {source: current, "
                     "iterations: 5}]"),
            "current x 5, then initial x 5, then current x 5");
}

TEST(TrainConfig, ASourceIsAStageOfOneIterationAndBack) {
  const Source bank{.kind = SourceKind::bank, .path = "a.jsonl"},
      recent{.kind = SourceKind::recent, .step = 4};
  for (const Source& source :
       {Source{.kind = SourceKind::current}, Source{.kind = SourceKind::initial}, bank, recent,
        Source{.kind = SourceKind::mix, .of = {recent, bank}},
        Source{.kind = SourceKind::mix, .of = {bank, {.kind = SourceKind::current}}, .ratio = {2, 7}}}) {
    TrainConfig config;
    config.curriculum.stages = {stage_config(source)};
    EXPECT_EQ(make_stages(config)[0].source, source) << source_name(source);
    EXPECT_EQ(make_stages(config)[0].iterations, 1u);
  }
}

TEST(TrainConfig, MakesTheTriggersItNames) {
  const auto made = [](const std::string& trigger) {
    return make_trigger(parse_train_config(kBase + "trigger: {" + trigger + "}\n", "run.yaml").trigger.rule);
  };
  EXPECT_EQ(made("")->earliest_end(0), 2u);
  EXPECT_TRUE(made("")->needs_gradients());
  EXPECT_EQ(made("earliest: 6")->earliest_end(0), 6u);
  EXPECT_FALSE(made("kind: kl_plateau")->needs_gradients());
  EXPECT_EQ(made("kind: fixed, iteration: 7")->earliest_end(0), 7u);
  const auto strict = made("threshold: 0.5, persistence: 1");
  EXPECT_FALSE(strict->observe({.iteration = 1, .gradients = {.distance = 0.6, .noise = 1}}).is_set);
  EXPECT_TRUE(strict->observe({.iteration = 2, .gradients = {.distance = 0.5, .noise = 1}}).is_set);
  const auto length = made("kind: length_plateau, tolerance: 0.5, window: 1, persistence: 1");
  (void)length->observe({.iteration = 1, .kl = 1, .length = 10});
  EXPECT_TRUE(length->observe({.iteration = 2, .kl = 9, .length = 15}).is_set);
}

TEST(TrainConfig, RefusesTriggersWithoutMeaning) {
  EXPECT_THAT(error_of("trigger: {kind: fixed}\n"), HasSubstr("trigger.iteration is needed"));
  EXPECT_THAT(error_of("trigger: {iteration: 4}\n"), HasSubstr("only kind fixed takes one, this is noise"));
  EXPECT_THAT(error_of("trigger: {threshold: 0}\n"), HasSubstr("trigger.threshold"));
  EXPECT_THAT(error_of("trigger: {watched: [{kind: kl_plateau}]}\n"), HasSubstr("name is required"));
  EXPECT_THAT(error_of("trigger: {watched: [{name: a}, {name: a, kind: kl_plateau}]}\n"),
              HasSubstr("\"a\" is there twice"));
  EXPECT_THAT(error_of("trigger: {watched: [{name: a, kind: fixed}]}\n"),
              HasSubstr("trigger.watched[0].iteration is needed"));
  const auto config = parse_train_config(
      kBase + "trigger: {watched: [{name: early, kind: fixed, iteration: 4}, {name: c2, threshold: 2}]}\n",
      "run.yaml");
  EXPECT_EQ(make_curriculum(config).state().watched.size(), 2u);
  EXPECT_EQ(parse_train_config(config_to_yaml(config), "again").trigger.watched[1].rule.threshold, 2);
}

TEST(TrainConfig, HintsAtALearningRateOfFullTrainingForAnAdapter) {
  EXPECT_THAT(config_warnings(parse_train_config(kBase + "adapter: {rank: 8}\n", "run.yaml")),
              ElementsAre(HasSubstr("train.learning_rate 1e-06 is one of full training")));
  EXPECT_THAT(config_warnings(parse_train_config(kBase + "adapter: {rank: 8}\ntrain: {learning_rate: 2e-5}\n",
                                                 "run.yaml")),
              IsEmpty());
}

TEST(TrainConfig, WarnsWhereTheTriggerCanNeverBeSet) {
  EXPECT_THAT(config_warnings(parse_train_config(kBase, "run.yaml")), IsEmpty());
  const TrainConfig one = parse_train_config(kBase + "train: {minibatch: 480}\n", "run.yaml");
  EXPECT_THAT(config_warnings(one), ElementsAre(HasSubstr("one minibatch an iteration")));
  const TrainConfig kl =
      parse_train_config(kBase + "train: {minibatch: 480}\ntrigger: {kind: kl_plateau}\n", "run.yaml");
  EXPECT_THAT(config_warnings(kl), IsEmpty());
}

// The paper masks 151645 and leaves 151643, which ends a response as well, as it is.
TEST(TrainConfig, EosControlsActOnTheFirstEosId) {
  EXPECT_EQ(objective_config(TrainConfig{}, {151645, 151643}).eos_ids, (std::vector<Token>{151645}));
}

}  // namespace
}  // namespace ropd::train
