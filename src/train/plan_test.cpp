#include "train/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tiny_world.h"
#include "train/rank_slices.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

uint64_t bytes_of(const Plan& plan, const std::string& beginning) {
  for (const MemoryItem& part : plan.memory)
    if (part.name.rfind(beginning, 0) == 0) return part.bytes;
  return 0;
}

TEST(Plan, BudgetsFollowTheConfiguration) {
  const test::TinyWorld world;
  const Plan plan = make_plan(world.config("run", {"train.responses_per_iteration=480", "train.minibatch=128",
                                                   "train.iterations=15", "curriculum.bank.responses=2400"}),
                              1e9);
  EXPECT_EQ(plan.consumed, 7200u);
  EXPECT_EQ(plan.steps, 60u);
  EXPECT_THAT(plan.minibatches, ElementsAre(128, 128, 128, 96));
  EXPECT_EQ(plan.curriculum, "current until trigger, then initial");
  EXPECT_THAT(plan_text(plan),
              testing::AllOf(HasSubstr("C = 7200"), HasSubstr("U = 60"), HasSubstr("128 + 128 + 128 + 96"),
                             HasSubstr("teacher weights")));
}

TEST(Plan, MemoryPartsAddUpAndFollowTheParameters) {
  const test::TinyWorld world;
  const Plan plan = make_plan(world.config("run"), 1e9);
  EXPECT_EQ(plan.memory_bytes, plan.phase_bytes(plan.peak));
  const uint64_t parameters =
      test::random_parameters(test::tiny_config(Architecture::qwen3), 1).values().size();
  EXPECT_EQ(plan.student_parameters, parameters);
  EXPECT_EQ(bytes_of(plan, "student weights"), 4 * parameters);
  EXPECT_EQ(bytes_of(plan, "gradient"), 4 * parameters);
  EXPECT_EQ(bytes_of(plan, "gradients of shards"), 0u);  // one shard
  // A small model has a gradient for every shard, and a minibatch of four no more shards than that.
  EXPECT_EQ(bytes_of(make_plan(world.config("run", {"train.shards=8"}), 1e9), "gradients of shards"),
            3 * 4 * parameters);
  EXPECT_EQ(bytes_of(plan, "AdamW"), 8 * parameters);
  EXPECT_EQ(bytes_of(plan, "trigger"), 8 * parameters);
  EXPECT_EQ(bytes_of(plan, "teacher weights"), 4 * parameters);
  EXPECT_EQ(bytes_of(plan, "rollout weights"), 4 * parameters);
  EXPECT_EQ(bytes_of(plan, "keys and values"), 2'000'000u);
  EXPECT_EQ(plan.checkpoint_bytes, 20 * parameters);
  EXPECT_GT(bytes_of(plan, "activations"), 0u);
  EXPECT_GT(bytes_of(plan, "vocabulary"), 0u);
  EXPECT_LT(bytes_of(plan, "vocabulary"), uint64_t{1} << 20);  // no more than the few tokens' logits
}

TEST(Plan, RanksDivideWhatIsOwnedInSlicesAndShareTheWork) {
  const test::TinyWorld world;
  const auto config = world.config("run", {"train.shards=8", "train.minibatch=10"});
  const Plan one = make_plan(config, 1e9), four = make_plan(config, 1e9, 4);
  EXPECT_EQ(one.step_bytes, 0u);
  EXPECT_EQ(bytes_of(four, "AdamW"), bytes_of(one, "AdamW") / 4);
  EXPECT_EQ(bytes_of(four, "trigger"), bytes_of(one, "trigger") / 4);
  EXPECT_EQ(bytes_of(four, "gradient (own slice)"), bytes_of(one, "gradient") / 4);
  EXPECT_EQ(bytes_of(four, "gradients of shards"), 2 * 4 * one.student_parameters) << "two shards a rank";
  EXPECT_EQ(bytes_of(four, "student weights"), bytes_of(one, "student weights"));
  EXPECT_EQ(four.step_bytes, step_bytes(one.student_parameters, 8, 4));
  EXPECT_LT(four.seconds_per_iteration, one.seconds_per_iteration);
  EXPECT_THAT(plan_text(four), testing::AllOf(HasSubstr("ranks        4"), HasSubstr("100")));
}

TEST(Plan, APhaseCountsWhatItNeedsAndWhatIsAlwaysHeld) {
  Plan plan;
  plan.memory = {{"weights", 100, "", Phase::always},
                 {"keys", 20, "", Phase::sampling},
                 {"teacher", 50, "", Phase::teacher_scoring},
                 {"its activations", 5, "", Phase::teacher_scoring},
                 {"gradient", 40, "", Phase::updates}};
  EXPECT_EQ(plan.phase_bytes(Phase::always), 100u);
  EXPECT_EQ(plan.phase_bytes(Phase::sampling), 120u);
  EXPECT_EQ(plan.phase_bytes(Phase::teacher_scoring), 155u);
  EXPECT_EQ(plan.phase_bytes(Phase::updates), 140u);
}

TEST(Plan, ThePeakIsTheLargestPhaseAndIsNamed) {
  const test::TinyWorld world;
  const Plan sampling = make_plan(world.config("run", {"rollout.memory_gb=3"}), 1e9);
  EXPECT_EQ(sampling.peak, Phase::sampling);
  EXPECT_THAT(plan_text(sampling), HasSubstr("at most, in sampling"));
  const Plan plain = make_plan(world.config("run"), 1e9);
  EXPECT_EQ(plain.peak, Phase::teacher_scoring);
  for (const Phase phase : {Phase::sampling, Phase::student_scoring, Phase::teacher_scoring, Phase::updates})
    EXPECT_LE(plain.phase_bytes(phase), plain.memory_bytes);
  // Objectives over whole distributions need the teacher's states and its head in the update.
  const Plan full = make_plan(world.config("run", {"objective.kind=jsd"}), 1e9);
  EXPECT_GT(full.phase_bytes(Phase::updates), plain.phase_bytes(Phase::updates));
}

// Measured with random weights: docs/benchmarks.md.
TEST(Plan, ASmallQwen3WithA4BTeacherFitsInto24GiBAt4KTokens) {
  const test::TinyWorld world;
  const auto write_shape = [&](const char* name, const char* sizes) {
    write_file_atomically(
        world.path(name) / "config.json",
        std::string(R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 128,
 "vocab_size": 151936, "max_position_embeddings": 40960, "rope_theta": 1000000, "rms_norm_eps": 1e-06,
 "hidden_act": "silu", "attention_bias": false, "tie_word_embeddings": true, "torch_dtype": "bfloat16", )") +
            sizes + "}");
  };
  write_shape("student", R"("hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
 "num_attention_heads": 16, "num_key_value_heads": 8)");
  write_shape("teacher", R"("hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36,
 "num_attention_heads": 32, "num_key_value_heads": 8)");
  const Plan plan =
      make_plan(world.config("run", {"train.responses_per_iteration=480", "train.minibatch=128",
                                     "train.microbatch_tokens=8192", "rollout.max_response_tokens=4096",
                                     "rollout.precision=bf16", "rollout.memory_gb=6",
                                     "curriculum.bank.responses=2400"}),
                1e9);
  EXPECT_EQ(plan.peak, Phase::teacher_scoring);
  EXPECT_LT(plan.memory_bytes, uint64_t{24} << 30);
  EXPECT_GT(plan.memory_bytes, uint64_t{20} << 30);  // the teacher alone is 8 GB, the student's state 12
}

TEST(Plan, LeavesOutWhatARunDoesNotNeed) {
  const test::TinyWorld world;
  const Plan file = make_plan(world.config("run", {"trigger.storage=file"}), 1e9);
  EXPECT_EQ(bytes_of(file, "trigger"), 0u);
  const Plan bank =
      make_plan(world.config("run", {"curriculum.stages=[{source: bank, path: b.jsonl}]"}), 1e9);
  EXPECT_EQ(bytes_of(bank, "rollout weights"), 0u);
  EXPECT_EQ(bytes_of(bank, "keys"), 0u);
  EXPECT_EQ(bytes_of(bank, "trigger"), 0u);
  EXPECT_EQ(bank.checkpoint_bytes, 12 * bank.student_parameters);
  EXPECT_LT(bank.seconds_per_iteration, file.seconds_per_iteration);
}

TEST(Plan, RefusalsGiveTheNumbersAndTheSettingThatHelps) {
  const test::TinyWorld world;
  Plan plan = make_plan(world.config("run"), 1e9);
  plan.free_disk_bytes = UINT64_MAX;
  plan.available_bytes = UINT64_MAX;
  EXPECT_EQ(error_of([&] { check_plan(plan); }), "no error");
  plan.memory = {{"student weights (f32 master)", 9'000'000'000, ""},
                 {"trigger (two gradients)", 6'000'000'000, "trigger.storage=file"},
                 {"activations", 1'000'000'000, "train.microbatch_tokens"}};
  plan.memory_bytes = 16'000'000'000;
  plan.available_bytes = 12'000'000'000;
  EXPECT_THAT(error_of([&] { check_plan(plan); }),
              testing::AllOf(HasSubstr("of memory"), HasSubstr("trigger.storage=file"),
                             HasSubstr("trigger (two gradients)")));
  plan.available_bytes = UINT64_MAX;
  plan.disk_bytes = 2000;
  plan.free_disk_bytes = 1000;
  EXPECT_THAT(error_of([&] { check_plan(plan); }), HasSubstr("checkpoint.keep"));
}

TEST(Plan, ReadsOnlyTheShapesOfTheModels) {
  const test::TinyWorld world;
  for (const char* folder : {"student", "teacher"})
    std::filesystem::remove(world.path(folder) / "model.safetensors");
  EXPECT_GT(make_plan(world.config("run"), 1e9).memory_bytes, 0u);
  std::filesystem::remove(world.path("teacher") / "config.json");
  EXPECT_THAT(error_of([&] { make_plan(world.config("run"), 1e9); }), HasSubstr("teacher/config.json"));
}

TEST(Plan, MeasuresSomeSpeed) { EXPECT_GT(measure_flops(), 1e6); }

}  // namespace
}  // namespace ropd::train
