#include "train/local_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/stop.h"
#include "support/whole_run.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::HasSubstr;

class LocalRunTest : public testing::Test {
 protected:
  LocalRunTest() { set_log_level(LogLevel::quiet); }
  ~LocalRunTest() override {
    clear_stop_request();
    set_log_level(LogLevel::info);
  }
  const test::TinyWorld world_;
};

// What a run refers to, in the order it has to live.
struct Parts {
  TrainConfig config;
  io::RunDirectory directory;
  ModelPair models;
  QuerySet queries;
  LocalRun local;
  explicit Parts(const TrainConfig& c)
      : config(c),
        directory(io::RunDirectory::create(c.output, "test: 1\n", "{}\n")),
        models(load_models(config)),
        queries(load_queries(config, *models.student_renderer)),
        local(config, directory, models, queries) {}
};

TEST_F(LocalRunTest, BeginsWithTheStudentAndKnowsBothPolicies) {
  Parts parts(world_.config("run"));
  EXPECT_EQ(parts.local.start.step, 0u);
  EXPECT_EQ(parts.local.start.fingerprints.size(), 1u) << "of the queries; a session adds its files";
  const std::string initial = parts.local.generator.fingerprint({.is_initial = true});
  EXPECT_EQ(parts.local.generator.fingerprint({}), initial);
  parts.local.learner.values()[0] += 1;
  EXPECT_NE(parts.local.generator.fingerprint({}), initial);
  EXPECT_EQ(parts.local.generator.fingerprint({.is_initial = true}), initial);
}

TEST_F(LocalRunTest, AContinuationTakesWeightsOptimizerAndStepOver) {
  test::run_to_the_end(
      world_.config("first", {"train.iterations=2", "curriculum.stages=[{source: current}]"}));
  const Path checkpoint = world_.path("first") / "checkpoints" / "step-00006";
  Parts parts(world_.config("next", {"continue_from=" + checkpoint.string()}));
  EXPECT_EQ(parts.local.start.step, 6u);
  const auto loaded = model::Parameters::load(io::ModelDirectory(checkpoint / "model"));
  EXPECT_TRUE(std::ranges::equal(parts.local.learner.values(), loaded.values()));
  std::filesystem::create_directories(world_.path("saved"));
  EXPECT_EQ(parts.local.learner.save(world_.path("saved"), "").updates, 6u);
  EXPECT_EQ(read_file(world_.path("saved") / "optimizer.safetensors"),
            read_file(checkpoint / "optimizer.safetensors"));
}

TEST_F(LocalRunTest, SavesTheTypeOfTheStudentsFilesUnlessToldOtherwise) {
  const auto student = test::random_parameters(test::tiny_config(Architecture::qwen3), 1);
  test::write_tiny_directory(world_.path("bf16"), student, {test::kTinyEnd}, DType::bf16);
  const auto saved_type = [&](const std::string& name, const std::vector<std::string>& settings) {
    Parts parts(world_.config(name, settings));
    parts.local.learner.save_model(world_.path(name) / "model", "");
    return io::ModelDirectory(world_.path(name) / "model").config().dtype;
  };
  const std::string bf16 = "student=" + world_.path("bf16").string();
  EXPECT_EQ(saved_type("a", {}), "float32");
  EXPECT_EQ(saved_type("b", {bf16}), "bfloat16");
  EXPECT_EQ(saved_type("c", {bf16, "checkpoint.dtype=f32"}), "float32");
  EXPECT_EQ(saved_type("d", {"checkpoint.dtype=bf16"}), "bfloat16");
}

TEST_F(LocalRunTest, ACheckpointInsideAnIterationIsNotContinued) {
  const TrainConfig config =
      world_.config("first", {"train.iterations=2", "curriculum.stages=[{source: current}]"});
  start_run(config, "test", {.on_step = [](const StepRecord& step) {
              if (step.step == 2) request_stop();
            }});
  clear_stop_request();
  EXPECT_THAT(error_of([&] {
                Parts parts(world_.config(
                    "next", {"continue_from=" + (world_.path("first") / "checkpoints/step-00002").string()}));
              }),
              HasSubstr("in the middle of an iteration"));
}

}  // namespace
}  // namespace ropd::train
