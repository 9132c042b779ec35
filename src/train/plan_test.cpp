#include "train/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/block.h"
#include "support/tiny_world.h"
#include "train/rank_slices.h"
#include "train/run_state.h"

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
                              {.flops = 1e9});
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
  const Plan plan = make_plan(world.config("run"), {.flops = 1e9});
  EXPECT_EQ(plan.memory_bytes, plan.phase_bytes(plan.peak));
  const uint64_t parameters =
      test::random_parameters(test::tiny_config(Architecture::qwen3), 1).values().size();
  EXPECT_EQ(plan.student_parameters, parameters);
  EXPECT_EQ(bytes_of(plan, "student weights"), 4 * parameters);
  EXPECT_EQ(bytes_of(plan, "gradient"), 4 * parameters);
  EXPECT_EQ(bytes_of(plan, "gradients of shards"), 0u);  // one shard
  // A small model has a gradient for every shard, and a minibatch of four no more shards than that.
  EXPECT_EQ(
      bytes_of(make_plan(world.config("run", {"train.shards=8"}), {.flops = 1e9}), "gradients of shards"),
      3 * 4 * parameters);
  EXPECT_EQ(bytes_of(plan, "AdamW"), 8 * parameters);
  EXPECT_EQ(bytes_of(plan, "trigger"), 8 * parameters);
  EXPECT_EQ(bytes_of(plan, "teacher weights"), 4 * parameters);
  EXPECT_EQ(bytes_of(plan, "rollout weights"), 4 * parameters);
  EXPECT_EQ(bytes_of(plan, "keys and values"), 2'000'000u);
  EXPECT_EQ(plan.checkpoint_bytes, 20 * parameters);
  EXPECT_EQ(make_plan(world.config("run", {"checkpoint.dtype=bf16"}), {.flops = 1e9}).checkpoint_bytes,
            22 * parameters);
  EXPECT_GT(bytes_of(plan, "activations"), 0u);
  EXPECT_GT(bytes_of(plan, "vocabulary"), 0u);
  EXPECT_LT(bytes_of(plan, "vocabulary"), uint64_t{1} << 20);  // no more than the few tokens' logits
}

TEST(Plan, AnAdapterCountsByItsOwnParametersAndTheStudentAsStored) {
  const test::TinyWorld world;
  const Plan all = make_plan(world.config("run"), {.flops = 1e9}),
             plan = make_plan(world.config("run", {"adapter={rank: 2, targets: [q_proj, down_proj]}"}),
                              {.flops = 1e9});
  const uint64_t adapter = 2 * 2 * ((24 + 20) + (20 + 28));  // two layers, rank 2
  EXPECT_EQ(plan.trained_parameters, adapter);
  EXPECT_EQ(bytes_of(plan, "student weights (mapped"), 4 * plan.student_parameters);
  EXPECT_EQ(bytes_of(plan, "adapter"), 4 * adapter);
  EXPECT_EQ(bytes_of(plan, "AdamW"), 8 * adapter);
  EXPECT_EQ(bytes_of(plan, "trigger"), 8 * adapter);
  EXPECT_EQ(bytes_of(plan, "gradient"), 4 * adapter);
  EXPECT_EQ(bytes_of(plan, "one layer with its adapter"), 4u * (24 * 20 + 20 * 28));
  const Plan rounded = make_plan(
      world.config("run", {"adapter={rank: 2, targets: [q_proj, down_proj]}", "train.precision=bf16"}),
      {.flops = 1e9});
  EXPECT_EQ(bytes_of(rounded, "one layer with its adapter"), 2u * (24 * 20 + 20 * 28));
  EXPECT_EQ(plan.checkpoint_bytes, 20 * adapter);
  EXPECT_LT(plan.memory_bytes, all.memory_bytes);
  EXPECT_LT(plan.seconds_per_iteration, all.seconds_per_iteration);
  EXPECT_THAT(plan_text(plan), HasSubstr("is trained"));
  EXPECT_THAT(plan_text(all), testing::Not(HasSubstr("is trained")));
}

TEST(Plan, RanksDivideWhatIsOwnedInSlicesAndShareTheWork) {
  const test::TinyWorld world;
  const auto config = world.config("run", {"train.shards=8", "train.minibatch=10"});
  const Plan one = make_plan(config, {.flops = 1e9}), four = make_plan(config, {.flops = 1e9, .ranks = 4});
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
  const Plan sampling = make_plan(world.config("run", {"rollout.memory_gb=3"}), {.flops = 1e9});
  EXPECT_EQ(sampling.peak, Phase::sampling);
  EXPECT_THAT(plan_text(sampling), HasSubstr("at most, in sampling"));
  const Plan plain = make_plan(world.config("run"), {.flops = 1e9});
  EXPECT_EQ(plain.peak, Phase::teacher_scoring);
  for (const Phase phase : {Phase::sampling, Phase::student_scoring, Phase::teacher_scoring, Phase::updates})
    EXPECT_LE(plain.phase_bytes(phase), plain.memory_bytes);
  // Objectives over whole distributions need the teacher's states and its head in the update.
  const Plan full = make_plan(world.config("run", {"objective.kind=jsd"}), {.flops = 1e9});
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
                {.flops = 1e9, .memory_bytes = uint64_t{32} << 30});
  EXPECT_EQ(plan.peak, Phase::teacher_scoring);
  EXPECT_LT(plan.memory_bytes, uint64_t{24} << 30);
  EXPECT_GT(plan.memory_bytes, uint64_t{20} << 30);  // the teacher alone is 8 GB, the student's state 12
}

TEST(Plan, ATeacherThatDoesNotFitIsStreamedAndItsReadsAreCounted) {
  const test::TinyWorld world;
  const std::vector<std::string> settings = {"train.responses_per_iteration=480", "train.minibatch=128",
                                             "curriculum.bank.responses=480",
                                             "rollout.max_response_tokens=64"};
  const auto with = [&](const std::string& more, double speed = 0) {
    auto all = settings;
    if (!more.empty()) all.push_back(more);
    return make_plan(world.config("run", all), {.flops = 1e9, .read_bytes_per_second = speed});
  };
  const Plan resident = with("");
  EXPECT_FALSE(resident.teacher.is_streamed);
  EXPECT_EQ(resident.teacher.read_bytes, 0u);
  EXPECT_THAT(plan_text(resident), HasSubstr("parameters, resident"));
  const Plan streamed = with("train.teacher_memory_gb=0", 1e6);
  EXPECT_TRUE(streamed.teacher.is_streamed);
  EXPECT_FALSE(streamed.teacher.reads_ahead);
  // 480 responses of 16 tokens; 8192 positions a pass: a batch.
  EXPECT_EQ(streamed.teacher.passes, 1u);
  EXPECT_LT(bytes_of(streamed, "teacher weights (streamed"), bytes_of(resident, "teacher weights"));
  const uint64_t vector = 20 * 4;  // the last norm is always in memory; the tied embedding is the head
  EXPECT_EQ(streamed.teacher.read_bytes, 4 * streamed.teacher_parameters - vector);
  EXPECT_EQ(streamed.teacher.read_seconds, static_cast<double>(streamed.teacher.read_bytes) / 1e6);
  EXPECT_GT(streamed.seconds_per_iteration, resident.seconds_per_iteration);
  EXPECT_THAT(plan_text(streamed),
              testing::AllOf(HasSubstr("streamed: 1 pass an iteration"), HasSubstr("measured now")));
}

TEST(Plan, StreamedPassesFollowPositionsMinibatchesAndWholeRows) {
  const test::TinyWorld world;
  const auto passes = [&](std::vector<std::string> settings) {
    settings.insert(settings.end(), {"train.responses_per_iteration=480", "train.minibatch=128",
                                     "curriculum.bank.responses=480", "train.microbatch_tokens=32768",
                                     "train.teacher_memory_gb=0"});
    return make_plan(world.config("run", settings), {.flops = 1e9}).teacher.passes;
  };
  EXPECT_EQ(passes({"rollout.max_response_tokens=64"}), 1u);
  EXPECT_EQ(passes({"rollout.max_response_tokens=160"}), 3u);  // 480 * 40 positions by 8192
  EXPECT_EQ(passes({"rollout.max_response_tokens=64", "train.rescore=minibatch"}), 4u);
  EXPECT_EQ(passes({"rollout.max_response_tokens=64", "objective.kind=jsd"}), 1u + 4);  // one shard each
}

TEST(Plan, ScratchFilesCostDiskAndTraffic) {
  const test::TinyWorld world;
  const Plan memory = make_plan(world.config("run"), {.flops = 1e9}),
             file = make_plan(world.config("run", {"trigger.storage=file", "train.optimizer_storage=file"}),
                              {.flops = 1e9});
  const uint64_t parameters = memory.student_parameters;
  EXPECT_EQ(memory.scratch_bytes, 0u);
  EXPECT_EQ(bytes_of(file, "AdamW"), 0u);
  EXPECT_EQ(file.scratch_bytes, 16 * parameters);
  EXPECT_EQ(file.disk_bytes, memory.disk_bytes + 16 * parameters);
  EXPECT_EQ(file.optimizer_file_bytes, 16 * parameters);
  EXPECT_EQ(file.trigger_file_bytes, 8 * parameters);
  EXPECT_THAT(plan_text(file), HasSubstr("AdamW's moments read and written an update"));
}

TEST(Plan, AnAdapterIsPlannedByItsParameters) {
  const test::TinyWorld world;
  const TrainConfig config = world.config("run");
  const PlannedModels models = read_shapes(config);
  const Plan plan = make_plan(config, {.flops = 1e9}, models,
                              {.parameters = 100, .is_adapter = true, .merged_layer_bytes = 70});
  EXPECT_EQ(bytes_of(plan, "student weights (mapped, frozen)"), models.student_bytes);
  EXPECT_EQ(bytes_of(plan, "adapter"), 400u);
  EXPECT_EQ(bytes_of(plan, "AdamW"), 800u);
  EXPECT_EQ(bytes_of(plan, "gradient"), 400u);
  EXPECT_EQ(bytes_of(plan, "one layer with its adapter"), 70u);
  EXPECT_EQ(plan.checkpoint_bytes, 2000u);
  EXPECT_THAT(plan_text(plan), HasSubstr("an adapter of 100 is trained"));
  EXPECT_LT(plan.seconds_per_iteration, make_plan(config, {.flops = 1e9}).seconds_per_iteration);
}

TEST(Plan, LeavesOutWhatARunDoesNotNeed) {
  const test::TinyWorld world;
  const Plan file = make_plan(world.config("run", {"trigger.storage=file"}), {.flops = 1e9});
  EXPECT_EQ(bytes_of(file, "trigger"), 0u);
  EXPECT_EQ(file.disk_bytes,
            make_plan(world.config("run"), {.flops = 1e9}).disk_bytes + 8 * file.student_parameters);
  const Plan bank =
      make_plan(world.config("run", {"curriculum.stages=[{source: bank, path: b.jsonl}]"}), {.flops = 1e9});
  EXPECT_EQ(bytes_of(bank, "rollout weights"), 0u);
  EXPECT_EQ(bytes_of(bank, "keys"), 0u);
  EXPECT_EQ(bytes_of(bank, "trigger"), 0u);
  EXPECT_EQ(bank.checkpoint_bytes, 12 * bank.student_parameters);
  EXPECT_LT(bank.seconds_per_iteration, file.seconds_per_iteration);
}

TEST(Plan, TimeAndDiskFollowTheLengthThatIsExpected) {
  const test::TinyWorld world;
  const auto config = world.config("run", {"rollout.max_response_tokens=400"});
  const Plan quarter = make_plan(config, {.flops = 1e9});
  EXPECT_EQ(quarter.assumed_length, 100);
  const Plan longer = make_plan(config, {.flops = 1e9, .mean_tokens = 300});
  EXPECT_EQ(longer.assumed_length, 300);
  EXPECT_GT(longer.seconds.teacher, 1.8 * quarter.seconds.teacher);
  EXPECT_GT(longer.disk_bytes, quarter.disk_bytes);
  EXPECT_THAT(error_of([&] { (void)make_plan(config, {.flops = 1e9, .mean_tokens = 401}); }),
              HasSubstr("mean length of 401 tokens is beyond rollout.max_response_tokens, which is 400"));
}

TEST(Plan, LayersAreComputedAgainWhereResponsesOfTheMeanLengthDoNotFit) {
  const test::TinyWorld world;
  auto config = world.config("run", {"rollout.max_response_tokens=400", "train.microbatch_tokens=1024",
                                     "train.minibatch=2", "train.shards=2"});
  const auto updates = [&](double traced_tokens, double mean_tokens) {
    const ModelConfig student = test::tiny_config(Architecture::qwen3);
    config.train.activation_memory_gb.value = traced_tokens *
                                              static_cast<double>(model::trace_bytes_per_token(student)) *
                                              static_cast<double>(student.num_layers) / 1e9;
    return make_plan(config, {.flops = 1e9, .mean_tokens = mean_tokens}).seconds.updates;
  };
  EXPECT_EQ(updates(200, 20), updates(10'000, 20));  // the longest response would not fit
  EXPECT_GT(updates(200, 390), updates(10'000, 390));
}

TEST(Plan, RefusalsGiveTheNumbersAndTheSettingThatHelps) {
  const test::TinyWorld world;
  Plan plan = make_plan(world.config("run"), {.flops = 1e9});
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
  EXPECT_GT(make_plan(world.config("run"), {.flops = 1e9}).memory_bytes, 0u);
  std::filesystem::remove(world.path("teacher") / "config.json");
  EXPECT_THAT(error_of([&] { make_plan(world.config("run"), {.flops = 1e9}); }),
              HasSubstr("teacher/config.json"));
}

// Its curriculum counts from the steps of the checkpoint on.
TEST(Plan, AContinuationBeginsBehindItsCheckpoint) {
  const test::TinyWorld world;
  const auto config = [&](const char* step) {
    return world.config("run", {"train.iterations=2", "continue_from=" + world.path("step").string(),
                                std::string("curriculum.stages=[{source: current, iterations: 1}, "
                                            "{source: recent, step: ") +
                                    step + "}]"});
  };
  EXPECT_EQ(steps_before(config("3")), 0u) << "not made yet";
  EXPECT_NO_THROW((void)make_plan(config("3"), {.flops = 1e9}));
  SavedRun saved;
  saved.run.step = 9;
  saved.curriculum.stage_begins = {1};
  std::filesystem::create_directory(world.path("step"));
  write_file_atomically(world.path("step") / "state.json", write_run_state(saved));
  EXPECT_EQ(steps_before(config("12")), 9u);
  EXPECT_NO_THROW((void)make_plan(config("12"), {.flops = 1e9}));
  EXPECT_THAT(error_of([&] { (void)make_plan(config("3"), {.flops = 1e9}); }),
              HasSubstr("recent step 3 lies before the first step of this run, 9"));
}

TEST(Plan, MeasuresSomeSpeed) { EXPECT_GT(measure_flops(), 1e6); }

}  // namespace
}  // namespace ropd::train
