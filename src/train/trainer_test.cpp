#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/reference_iteration.h"
#include "support/staged_world.h"
#include "support/tiny_world.h"
#include "train/local_run.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

// Everything a trainer refers to, in the order it has to live.
struct TrainerWorld {
  TrainConfig config;
  io::RunDirectory directory;
  ModelPair models;
  QuerySet queries;
  LocalRun local;
  Trainer trainer;
  explicit TrainerWorld(const TrainConfig& c, TrainerHooks hooks = {})
      : config(c),
        directory(io::RunDirectory::create(c.output, "test: 1\n", "{}\n")),
        models(load_models(config)),
        queries(config.data.queries.empty() || !models.student_renderer
                    ? QuerySet{}
                    : load_queries(config, *models.student_renderer)),
        local(config, directory, models, queries),
        trainer(config, local.seams(), local.start, std::move(hooks)) {}
  model::Parameters& student() { return dynamic_cast<FullLearner&>(local.learner).parameters(); }
};

std::vector<float> values_of(TrainerWorld& world) {
  return {world.student().values().begin(), world.student().values().end()};
}

ModelConfig very_small() {
  ModelConfig c = test::tiny_config(Architecture::qwen3);
  c.hidden_size = 8;
  c.intermediate_size = 8;
  c.num_layers = 1;
  c.num_heads = 2;
  c.num_kv_heads = 1;
  c.head_dim = 4;
  c.vocab_size = 11;
  return c;
}

std::string bank_stage(const Path& bank) {
  return "curriculum.stages=[{source: bank, path: " + bank.string() + "}]";
}

class AgainstTheReference : public testing::TestWithParam<std::pair<Reduction, uint64_t>> {};  // shards

// Two iterations of three updates with a learning rate that drives ratios out of the clip range. The large
// epsilon keeps AdamW well conditioned where a gradient is nearly zero.
TEST_P(AgainstTheReference, LossesNormsAndWeightsAgree) {
  const auto [reduction, shards] = GetParam();
  const test::TinyWorld world(very_small());
  const auto rollouts = test::random_rollouts(20, 11, 3, 5);
  TrainConfig config = world.config(
      "run", {bank_stage(world.write_bank("bank.jsonl", rollouts)), "train.iterations=2", "objective.top_k=4",
              "objective.dual_clip=1.3", "train.learning_rate=0.25", "train.epsilon=0.05",
              "train.weight_decay=0.1", "train.grad_clip=0.5", "train.microbatch_tokens=14"});
  config.train.reduction = reduction;
  config.train.shards = shards;
  TrainerWorld w(config);
  test::ReferenceTrainer reference(test::random_parameters(very_small(), 1),
                                   test::random_parameters(very_small(), 2),
                                   {.top_k = 4,
                                    .minibatch = 4,
                                    .shards = shards,
                                    .microbatch_tokens = 14,
                                    .is_token_mean_of_minibatch = reduction == Reduction::minibatch_tokens,
                                    .learning_rate = 0.25,
                                    .epsilon = 0.05,
                                    .weight_decay = 0.1,
                                    .grad_clip = 0.5,
                                    .dual_clip = 1.3});
  double clipped = 0, dual_clipped = 0;
  for (size_t k = 0; k < 2; ++k) {
    const auto record = w.trainer.iterate();
    const auto expected = reference.iterate(std::span(rollouts).subspan(10 * k, 10));
    ASSERT_TRUE(record && record->steps.size() == 3 && expected.size() == 3);
    for (size_t m = 0; m < 3; ++m) {
      const StepRecord& step = record->steps[m];
      EXPECT_NEAR(step.loss, expected[m].loss, 1e-5 * std::max(1.0, std::abs(expected[m].loss)));
      EXPECT_NEAR(step.grad_norm, expected[m].grad_norm, 2e-5 * std::max(1.0, expected[m].grad_norm));
      EXPECT_NEAR(step.clip.clip_fraction, expected[m].clip_fraction, 1e-9);
      EXPECT_NEAR(step.clip.dual_clip_fraction, expected[m].dual_clip_fraction, 1e-9);
      EXPECT_EQ(step.scale, m < 2 ? 1.0 : 0.5);
      EXPECT_EQ(step.microbatches, expected[m].microbatches);
      clipped += step.clip.clip_fraction;
      dual_clipped += step.clip.dual_clip_fraction;
    }
  }
  EXPECT_GT(clipped, 0);
  EXPECT_GT(dual_clipped, 0);
  double largest = 0;
  const auto updated = reference.parameters();
  const auto values = values_of(w);
  ASSERT_EQ(updated.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) largest = std::max(largest, std::abs(values[i] - updated[i]));
  EXPECT_LT(largest, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Reductions, AgainstTheReference,
                         testing::Values(std::pair{Reduction::dynamic_microbatch, 1},
                                         std::pair{Reduction::dynamic_microbatch, 2},
                                         std::pair{Reduction::dynamic_microbatch, 8},
                                         std::pair{Reduction::minibatch_tokens, 2}));

TEST(Trainer, AStudentThatEqualsItsTeacherStaysAsItIs) {
  const test::TinyWorld world(test::tiny_config(Architecture::qwen3), 5, 5);
  TrainerWorld w(world.config("run", {"train.weight_decay=0", "train.iterations=2",
                                      "curriculum.stages=[{source: current}]", "train.learning_rate=0.1"}));
  const auto before = values_of(w);
  while (!w.trainer.is_done()) {
    const auto record = w.trainer.iterate();
    EXPECT_EQ(record->loss, 0);
    EXPECT_EQ(record->grad_norm, 0);
  }
  EXPECT_EQ(values_of(w), before);
}

// The gradient of the first minibatch, recovered from AdamW's first moment: m = (1 - beta1) g.
std::vector<float> first_gradient(const test::TinyWorld& world, const std::string& output, const Path& bank,
                                  uint64_t microbatch_tokens, uint64_t shards) {
  TrainerWorld w(world.config(
      output, {bank_stage(bank), "train.reduction=minibatch_tokens", "train.minibatch=10",
               "train.grad_clip=0", "train.iterations=1", "train.shards=" + std::to_string(shards),
               "train.microbatch_tokens=" + std::to_string(microbatch_tokens)}));
  const auto record = w.trainer.iterate();
  std::filesystem::create_directories(world.path(output + "-saved"));
  w.trainer.save(world.path(output + "-saved"));
  const io::SafetensorsFile file(world.path(output + "-saved") / "optimizer.safetensors");
  std::vector<float> gradient{static_cast<float>(record->steps[0].microbatches)};
  for (const auto& slot : w.student().slots()) {
    const auto bytes = file.tensor("exp_avg." + slot.name).bytes;
    const auto* values = reinterpret_cast<const float*>(bytes.data());
    for (int64_t i = 0; i < slot.size; ++i) gradient.push_back(values[i] / 0.1f);
  }
  return gradient;
}

TEST(Trainer, PackingAndShardsDoNotChangeTheTokenMeanOfAMinibatch) {
  const test::TinyWorld world;
  const Path bank = world.write_bank("bank.jsonl", test::random_rollouts(10, 37, 4));
  const auto one = first_gradient(world, "a", bank, 1000, 1);
  EXPECT_EQ(one[0], 1);
  for (const uint64_t shards : {1, 2, 3, 8, 16})
    for (const uint64_t tokens : {1, 16, 33}) {
      const auto packed = first_gradient(world, "b" + std::to_string(shards) + "-" + std::to_string(tokens),
                                         bank, tokens, shards);
      EXPECT_GT(packed[0], 1);
      double largest = 0;
      for (size_t i = 1; i < one.size(); ++i)
        largest = std::max<double>(largest, std::abs(packed[i] - one[i]));
      EXPECT_LT(largest, 1e-6) << shards << " shards, " << tokens << " tokens";
    }
}

TEST(Trainer, ScoringBeforeEveryMinibatchKeepsTheRatioAtOne) {
  const test::TinyWorld world;
  const Path bank = world.write_bank("bank.jsonl", test::random_rollouts(10, 37, 4));
  const std::vector<std::string> settings = {bank_stage(bank), "train.iterations=2",
                                             "train.learning_rate=0.1"};
  auto fresh_settings = settings;
  fresh_settings.push_back("train.rescore=minibatch");
  TrainerWorld once(world.config("once", settings)), fresh(world.config("fresh", fresh_settings));
  const auto a = once.trainer.iterate(), b = fresh.trainer.iterate();
  EXPECT_EQ(a->steps[0].loss, b->steps[0].loss);
  EXPECT_NE(a->steps[1].loss, b->steps[1].loss);
  EXPECT_GT(a->clip.clip_fraction, 0);
  EXPECT_EQ(b->clip.clip_fraction, 0);
  EXPECT_EQ(b->clip.policy_kl, 0);
  EXPECT_NE(b->steps[0].distillation.kl_candidates, b->steps[1].distillation.kl_candidates);
  for (const auto* record : {&*a, &*b}) {  // scoring is no part of the updates, wherever it happens
    double updates = 0;
    for (const StepRecord& step : record->steps)
      updates += step.seconds_gradient + step.seconds_trigger + step.seconds_optimizer;
    EXPECT_EQ(record->seconds.update, updates);
    EXPECT_GT(record->seconds.score_teacher, 0);
  }
}

// Two ranks, 0-5 and 6-11, in pieces of two: {0 1 6 7} {2 3 8 9} {4 5 10 11}. Balanced, each has two long and
// four short responses: short short, long long, short short.
TEST(Trainer, TheOrderDecidesWhichResponsesShareAMinibatch) {
  const test::TinyWorld world;
  auto rollouts = test::random_rollouts(12, 37, 4);
  for (size_t i = 0; i < rollouts.size(); ++i) rollouts[i].response_ids.resize(i < 4 ? 12 : 2, 1);
  const Path bank = world.write_bank("bank.jsonl", rollouts);
  const auto tokens = [&](const std::string& order) {
    TrainerWorld run(world.config(order, {bank_stage(bank), "train.responses_per_iteration=12",
                                          "train.iterations=1", "train.shards=2", "train.order=" + order}));
    std::vector<uint64_t> result;
    const auto record = run.trainer.iterate();
    for (const StepRecord& step : record->steps) result.push_back(step.tokens);
    return result;
  };
  EXPECT_THAT(tokens("recorded"), ElementsAre(48, 8, 8));
  EXPECT_THAT(tokens("ranks"), ElementsAre(28, 28, 8));
  EXPECT_THAT(tokens("ranks_balanced"), ElementsAre(8, 48, 8));
}

TEST(Trainer, TheEosControlsSplitTheCoefficients) {
  const test::TinyWorld world;
  const Path bank = world.write_bank("bank.jsonl", test::random_rollouts(10, 37, 4));
  std::map<std::string, double> loss;
  for (const std::string eos : {"all", "none", "only"}) {
    TrainerWorld w(world.config(
        eos, {bank_stage(bank), "train.iterations=1", "train.minibatch=10",
              "train.reduction=minibatch_tokens", "objective.top_k=37", "objective.eos=" + eos}));
    loss[eos] = w.trainer.iterate()->loss;
  }
  EXPECT_NE(loss["only"], 0);
  EXPECT_NE(loss["none"], loss["all"]);
  EXPECT_NEAR(loss["none"] + loss["only"], loss["all"], 1e-6);
}

TEST(Trainer, EveryObjectiveMovesTheStudentTowardsTheTeacher) {
  const test::TinyWorld world;
  const Path bank = world.write_bank("bank.jsonl", test::random_rollouts(10, 37, 4));
  for (const std::string kind : {"candidates", "sampled_token", "renormalized", "tail_bucket",
                                 "full_reverse_kl", "full_forward_kl", "jsd"}) {
    TrainerWorld w(world.config(kind, {bank_stage(bank), "train.iterations=12", "objective.kind=" + kind,
                                       "train.learning_rate=0.01"}));
    IterationRecord first = *w.trainer.iterate(), last;
    while (!w.trainer.is_done()) last = *w.trainer.iterate();
    const bool is_sampled = kind == "sampled_token";
    const double before = is_sampled ? first.distillation.kl_sampled : first.distillation.kl_candidates;
    const double after = is_sampled ? last.distillation.kl_sampled : last.distillation.kl_candidates;
    EXPECT_LT(std::abs(after), std::abs(before)) << kind;
  }
  for (const std::string weights : {"teacher_p", "uniform"}) {
    TrainerWorld w(
        world.config(weights, {bank_stage(bank), "train.iterations=1", "objective.weights=" + weights}));
    EXPECT_GT(w.trainer.iterate()->grad_norm, 0) << weights;
  }
  TrainerWorld none(world.config("none", {bank_stage(bank), "train.iterations=1", "objective.top_k=0"}));
  EXPECT_GT(none.trainer.iterate()->grad_norm, 0);
}

// Token 0 has an input embedding of NaN; a response that reads it has no finite gradient.
struct PoisonedWorld {
  test::TinyWorld world{[] {
    ModelConfig c = test::tiny_config(Architecture::qwen3, false);
    return c;
  }()};
  Path bank_with(const std::string& name, size_t first, size_t count) const {
    auto rollouts = test::random_rollouts(20, 37, 4);
    for (size_t i = 0; i < rollouts.size(); ++i) {
      for (Token& id : rollouts[i].prompt_ids) id = std::max(id, 1);
      for (Token& id : rollouts[i].response_ids) id = std::max(id, 1);
      if (i >= first && i < first + count) rollouts[i].prompt_ids[0] = 0;
    }
    return world.write_bank(name, rollouts);
  }
  static void poison(TrainerWorld& world) {
    for (const auto& slot : world.student().slots())
      if (slot.name == "model.embed_tokens.weight")
        world.student().values()[static_cast<size_t>(slot.offset)] = std::numeric_limits<float>::quiet_NaN();
  }
};

TEST(Trainer, UpdatesAreToldFromTheirBeginningWithAllTokensSoFar) {
  const PoisonedWorld good;
  std::vector<std::pair<uint64_t, uint64_t>> told;
  TrainerWorld w(
      good.world.config("run", {bank_stage(good.bank_with("bank.jsonl", 5, 1)), "train.iterations=2"}),
      {.on_progress = [&](const char* stage, double done, uint64_t total, uint64_t tokens) {
        if (stage != std::string("updates") || done != std::floor(done)) return;
        EXPECT_EQ(total, 3u);
        told.push_back({done, tokens});
      }});
  const auto steps = w.trainer.iterate()->steps;
  const uint64_t first = steps[0].tokens, second = first + steps[1].tokens, third = second + steps[2].tokens;
  using Told = std::pair<uint64_t, uint64_t>;
  EXPECT_THAT(told, testing::ElementsAre(Told{0, 0}, Told{1, first}, Told{2, second}, Told{3, third}));
}

TEST(Trainer, ALongUpdateMovesInside) {
  const PoisonedWorld good;
  std::vector<double> told;
  TrainerWorld w(
      good.world.config("run", {bank_stage(good.bank_with("bank.jsonl", 5, 1)), "train.iterations=2"}),
      {.on_progress = [&](const char* stage, double done, uint64_t, uint64_t) {
        if (stage == std::string("updates")) told.push_back(done);
      }});
  (void)w.trainer.iterate();
  EXPECT_TRUE(std::ranges::is_sorted(told));
  for (const double minibatch : {0, 1, 2})
    EXPECT_TRUE(std::ranges::any_of(told, [&](double x) { return x > minibatch && x < minibatch + 1; }));
}

TEST(Trainer, AGradientThatIsNotFiniteIsSkippedCountedAndNamed) {
  const PoisonedWorld poisoned;
  std::vector<StepRecord> told;
  TrainerWorld w(poisoned.world.config(
                     "run", {bank_stage(poisoned.bank_with("bank.jsonl", 5, 1)), "train.iterations=2"}),
                 {.on_step = [&](const StepRecord& step) { told.push_back(step); }, .on_progress = {}});
  PoisonedWorld::poison(w);
  const auto before = values_of(w);
  const auto record = w.trainer.iterate();
  ASSERT_EQ(record->steps.size(), 3u);
  EXPECT_FALSE(record->steps[0].skipped);
  EXPECT_TRUE(record->steps[1].skipped);
  EXPECT_FALSE(record->steps[2].skipped);
  EXPECT_THAT(record->steps[1].skip_reason, HasSubstr("not finite"));
  EXPECT_TRUE(std::isfinite(record->loss));
  EXPECT_EQ(record->skipped_steps, 1u);
  EXPECT_EQ(record->step, 3u);
  const Path saved = poisoned.world.path("saved");
  std::filesystem::create_directories(saved);
  w.trainer.save(saved);
  EXPECT_EQ(read_run_state(saved).learner.updates, 2u);
  EXPECT_EQ(told.size(), 3u);
  const auto after = values_of(w);
  size_t changed = 0, not_finite = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    changed += after[i] != before[i] && std::isfinite(after[i]);
    not_finite += !std::isfinite(after[i]);
  }
  EXPECT_GT(changed, after.size() / 2);
  EXPECT_EQ(not_finite, 1u);
}

TEST(Trainer, StopsWhenTooManyStepsInARowAreNotFinite) {
  const PoisonedWorld poisoned;
  const Path all = poisoned.bank_with("all.jsonl", 0, 20);
  TrainerWorld w(
      poisoned.world.config("run", {bank_stage(all), "train.iterations=2", "train.max_skipped_steps=5"}));
  PoisonedWorld::poison(w);
  EXPECT_EQ(w.trainer.iterate()->skipped_steps, 3u);
  EXPECT_THAT(error_of([&] { w.trainer.iterate(); }),
              testing::AllOf(HasSubstr("step 5: 5 steps in a row"), HasSubstr("may have diverged before"),
                             HasSubstr("older checkpoint (continue_from)")));
  TrainerWorld never(
      poisoned.world.config("never", {bank_stage(all), "train.iterations=2", "train.max_skipped_steps=0"}));
  PoisonedWorld::poison(never);
  never.trainer.iterate();
  EXPECT_EQ(never.trainer.iterate()->skipped_steps, 6u);
}

TEST(Trainer, ATeacherThatAnswersNotANumberIsNoReasonToTrainOn) {
  const PoisonedWorld poisoned;
  auto broken = test::random_parameters(test::tiny_config(Architecture::qwen3, false), 2);
  for (const auto& slot : broken.slots())
    if (slot.name == "model.embed_tokens.weight")
      broken.values()[static_cast<size_t>(slot.offset)] = std::numeric_limits<float>::quiet_NaN();
  test::write_tiny_directory(poisoned.world.path("broken"), broken);
  TrainerWorld w(
      poisoned.world.config("run", {bank_stage(poisoned.bank_with("bank.jsonl", 5, 1)), "train.iterations=2",
                                    "teacher=" + poisoned.world.path("broken").string()}));
  const auto record = w.trainer.iterate();
  EXPECT_FALSE(record->steps[0].skipped);
  EXPECT_TRUE(record->steps[1].skipped);
  EXPECT_EQ(record->skipped_steps, 1u);
}

TEST(Trainer, ASampledIterationHasNoDriftInFullPrecision) {
  const test::TinyWorld world;
  TrainerWorld w(
      world.config("run", {"curriculum.stages=[{source: current, iterations: 1}, {source: initial}]",
                           "train.iterations=2", "trigger.watch=always"}));
  const auto current = w.trainer.iterate();
  EXPECT_EQ(current->drift_max, 0.0);
  EXPECT_GT(current->trigger.within.value_or(0), 0);
  EXPECT_THAT(current->trigger.note, HasSubstr("no preceding"));
  const auto replay = w.trainer.iterate();
  EXPECT_EQ(replay->source, "initial");
  EXPECT_FALSE(replay->drift_mean.has_value());  // the student has moved: that is no drift
  EXPECT_EQ(replay->rollout_policy_age, 3);
}

TEST(Trainer, TheTriggersVectorsMayLieInAFile) {
  const test::TinyWorld world;
  const std::vector<std::string> settings = {"train.iterations=4"};
  TrainerWorld memory(world.config("memory", settings));
  TrainerWorld file(world.config("file", {"train.iterations=4", "trigger.storage=file"}));
  while (!memory.trainer.is_done()) {
    const auto a = memory.trainer.iterate(), b = file.trainer.iterate();
    EXPECT_EQ(a->trigger.distance, b->trigger.distance);
    EXPECT_EQ(a->trigger.noise, b->trigger.noise);
  }
  EXPECT_EQ(values_of(memory), values_of(file));
}

TEST(Trainer, TheOptimizersMomentsMayLieInAFile) {
  const test::TinyWorld world;
  TrainerWorld memory(world.config("memory", {"train.iterations=3"}));
  TrainerWorld file(world.config("file", {"train.iterations=3", "train.optimizer_storage=file"}));
  while (!memory.trainer.is_done()) {
    EXPECT_EQ(memory.trainer.iterate()->loss, file.trainer.iterate()->loss);
  }
  EXPECT_EQ(values_of(memory), values_of(file));
  const test::TemporaryDirectory saved;
  for (const auto& [name, world_of_run] : {std::pair{"memory", &memory}, std::pair{"file", &file}}) {
    std::filesystem::create_directory(saved / name);
    world_of_run->trainer.save(saved / name);
  }
  EXPECT_EQ(read_file(saved / "memory" / "optimizer.safetensors"),
            read_file(saved / "file" / "optimizer.safetensors"));
}

TEST(Trainer, AStreamedTeacherTeachesTheSameBitsAndSaysWhatItRead) {
  const test::TinyWorld world;
  for (const std::string kind : {"candidates", "full_reverse_kl"}) {
    const std::vector<std::string> settings = {"train.iterations=3", "objective.kind=" + kind};
    auto streamed_settings = settings;
    streamed_settings.push_back("train.teacher_memory_gb=0");
    TrainerWorld resident(world.config("resident-" + kind, settings)),
        streamed(world.config("streamed-" + kind, streamed_settings));
    while (!resident.trainer.is_done()) {
      const auto a = resident.trainer.iterate(), b = streamed.trainer.iterate();
      EXPECT_EQ(a->loss, b->loss);
      EXPECT_FALSE(a->teacher_passes.has_value());
      EXPECT_EQ(b->teacher_passes.value_or(0) > 1, kind != "candidates");  // further ones for whole rows
      EXPECT_EQ(b->teacher_read_bytes.value_or(0) % b->teacher_passes.value_or(1), 0u);
      EXPECT_GT(b->teacher_read_bytes.value_or(0), 0u);
    }
    EXPECT_EQ(values_of(resident), values_of(streamed));
  }
}

// --- the three seams, played by doubles that write down what they are asked for ---

using test::StagedWorld;

TEST(TheThreeSeams, CarryAnIteration) {
  StagedWorld w({"curriculum.stages=[{source: current, until: trigger}, {source: initial}]",
                 "curriculum.bank.responses=10"});
  const auto record = w.trainer.iterate();
  EXPECT_THAT(w.diary, ElementsAre("weights of step 0", "sample 10",  // the initial bank
                                   "weights of step 0", "sample 10", "release", "score 10", "gradient of 4",
                                   "observe 1.00", "update 0.50", "gradient of 4", "observe 1.00",
                                   "update 0.50", "gradient of 2", "observe 0.50", "update 0.50", "compare"));
  EXPECT_EQ(w.learner.value, 1.5);
  EXPECT_EQ(record->seconds.score_student, 3);
  EXPECT_EQ(record->seconds.score_teacher, 5);
  EXPECT_EQ(record->trigger.tau, 1u);  // D <= V, persistence 1
  EXPECT_EQ(record->trigger.ratio, 0.5);
  EXPECT_EQ(record->step, 3u);
  EXPECT_EQ(record->consumed, 10u);
  EXPECT_EQ(record->distillation.kl_candidates, -1);
  EXPECT_EQ(w.trainer.curriculum().source_of(2).kind, SourceKind::initial);
  w.diary.clear();
  (void)w.trainer.iterate();  // replay: nothing is sampled, observed or compared
  EXPECT_THAT(w.diary, ElementsAre("release", "score 10", "gradient of 4", "update 0.50", "gradient of 4",
                                   "update 0.50", "gradient of 2", "update 0.50"));
}

TEST(TheThreeSeams, NoGradientIsObservedForATriggerThatReadsNone) {
  StagedWorld w({"curriculum.stages=[{source: current, until: trigger}, {source: initial}]",
                 "curriculum.bank.responses=10", "trigger.kind=kl_plateau"});
  const auto first = w.trainer.iterate();
  EXPECT_FALSE(first->trigger.qualifies.has_value()) << "nothing to compare with";
  const auto second = w.trainer.iterate();
  EXPECT_EQ(second->trigger.qualifies, true) << "the same KL again";
  EXPECT_EQ(second->trigger.tau, 2u);
  for (const std::string& line : w.diary)
    EXPECT_FALSE(line.starts_with("observe") || line.starts_with("compare")) << line;
}

TEST(TheThreeSeams, AreAskedAgainForEveryMinibatchThatIsScoredOnItsOwn) {
  StagedWorld w({"curriculum.stages=[{source: current}]", "train.rescore=minibatch", "train.minibatch=5"});
  w.learner.old_is_current = true;
  const auto record = w.trainer.iterate();
  EXPECT_THAT(w.diary, ElementsAre("weights of step 0", "sample 10", "release", "score 5", "gradient of 5",
                                   "update 0.50", "score 5", "gradient of 5", "update 0.50"));
  EXPECT_EQ(record->seconds.score_student, 6);
  EXPECT_EQ(record->distillation.kl_candidates, -1);
}

TEST(TheThreeSeams, AGradientThatIsNotFiniteIsNeitherObservedNorApplied) {
  StagedWorld w({"curriculum.stages=[{source: current}]", "trigger.watch=always"});
  w.learner.spoilt = 2;
  const auto record = w.trainer.iterate();
  EXPECT_THAT(w.diary, ElementsAre("weights of step 0", "sample 10", "release", "score 10", "gradient of 4",
                                   "observe 1.00", "update 0.50", "gradient of 4", "gradient of 2",
                                   "observe 0.50", "update 0.50", "compare"));
  EXPECT_EQ(record->steps[1].skip_reason, "spoilt");
  EXPECT_EQ(record->skipped_steps, 1u);
  EXPECT_EQ(record->step, 3u);
}

TEST(TheThreeSeams, AnOpenIterationWithoutMinibatchesLeftIsRefused) {
  const std::vector<std::string> settings = {"curriculum.stages=[{source: current}]"};
  StagedWorld w(settings, {.on_step = [](const StepRecord&) { request_stop(); }}), later(settings);
  EXPECT_FALSE(w.trainer.iterate().has_value());
  clear_stop_request();
  w.trainer.save(w.folder.path());
  const Path path = w.folder.path() / "state.json";
  const std::string state = read_file(path);
  EXPECT_THAT(state, HasSubstr("\"minibatches\": 1,"));
  for (const char* wrong : {"3", "4", "18446744073709551615"}) {  // of 4, 4 and 2 responses
    std::string changed = state;
    changed.replace(changed.find("\"minibatches\": 1,"), 17, std::string("\"minibatches\": ") + wrong + ",");
    write_file_atomically(path, changed);
    EXPECT_THAT(error_of([&] { later.trainer.restore(w.folder.path(), {}); }),
                testing::AllOf(HasSubstr("state.json: " + std::string(wrong) + " minibatches"),
                               HasSubstr("has 3 (damaged")));
  }
}

TEST(TheThreeSeams, AreSavedAndRestoredWithTheRun) {
  StagedWorld w({"curriculum.stages=[{source: current}]"}), later({"curriculum.stages=[{source: current}]"});
  (void)w.trainer.iterate();
  w.trainer.save(w.folder.path());
  later.trainer.restore(w.folder.path(), {});
  EXPECT_EQ(later.learner.value, 1.5);
  EXPECT_EQ(later.learner.restored.updates, 7u);
  EXPECT_EQ(later.trainer.iteration(), 2u);
  (void)later.trainer.iterate();
  EXPECT_THAT(later.diary, testing::Contains("weights of step 3"));
  EXPECT_EQ(later.supply.state().next_request, 20u);
}

}  // namespace
}  // namespace ropd::train
