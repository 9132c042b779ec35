#include "train/sft_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/log.h"
#include "base/stop.h"
#include "io/model_path.h"
#include "support/tiny_world.h"

namespace ropd::train {
namespace {

using testing::Contains;
using testing::HasSubstr;

class SftRuns : public testing::Test {
 protected:
  SftRuns() {
    set_log_level(LogLevel::quiet);
    std::string lines;
    for (int i = 0; i < 9; ++i)
      lines += "{\"prompt\": \"ab" + std::to_string(i) + "\", \"response\": \"cd\"}\n";
    write_file_atomically(world.path("pairs.jsonl"), lines);
  }
  ~SftRuns() override {
    clear_stop_request();
    set_log_level(LogLevel::info);
  }
  SftConfig config(const std::string& output) const {
    SftConfig config;
    config.model = world.path("student").string();
    config.data = world.path("pairs.jsonl").string();
    config.output = world.path(output).string();
    config.steps = 4;
    config.batch_tokens = 20;
    config.checkpoint_every = 2;
    return config;
  }
  // A run that was stopped behind its first step.
  Path stopped(const std::string& output) const {
    request_stop();
    EXPECT_EQ(fine_tune(config(output)), RunOutcome::stopped);
    clear_stop_request();
    return world.path(output);
  }
  std::string weights(const std::string& output) const {
    return sha256_file(world.path(output) / "model" / "model.safetensors");
  }
  const test::TinyWorld world;
};

TEST_F(SftRuns, AreKnownByTheirConfig) {
  EXPECT_TRUE(is_sft_run(stopped("run")));
  EXPECT_FALSE(is_sft_run(world.path("student")));
  std::filesystem::create_directory(world.path("other"));
  write_file_atomically(world.path("other") / "config.yaml", "student: a\n");
  EXPECT_FALSE(is_sft_run(world.path("other")));
}

TEST_F(SftRuns, GoOnWhereverTheyLieNow) {
  ASSERT_EQ(fine_tune(config("through")), RunOutcome::done);
  stopped("run");
  std::filesystem::rename(world.path("run"), world.path("moved"));
  EXPECT_EQ(resume_sft(world.path("moved")), RunOutcome::done);
  EXPECT_EQ(weights("moved"), weights("through"));
}

TEST_F(SftRuns, RefuseInputsThatChanged) {
  const Path run = stopped("run");
  write_file_atomically(world.path("pairs.jsonl"), "{\"prompt\": \"ab\", \"response\": \"ef\"}\n");
  EXPECT_THAT(test::error_of([&] { (void)fine_tune(config("run")); }), HasSubstr("pairs.jsonl"));
  EXPECT_THAT(test::error_of([&] { (void)resume_sft(run); }), HasSubstr("pairs.jsonl"));
}

TEST_F(SftRuns, RefuseAnEditedConfig) {
  const Path run = stopped("run");
  std::string yaml = read_file(run / "config.yaml");
  yaml.replace(yaml.find("learning_rate: 1e-05"), 20, "learning_rate: 2e-05");
  write_file_atomically(run / "config.yaml", yaml);
  EXPECT_THAT(test::error_of([&] { (void)resume_sft(run); }), HasSubstr("edited since the run began"));
}

TEST_F(SftRuns, VerifyNamesWhatIsDamaged) {
  ASSERT_EQ(fine_tune(config("run")), RunOutcome::done);
  const Path run = world.path("run");
  EXPECT_TRUE(verify_sft_run(run).damages.empty());
  EXPECT_THAT(verify_sft_run(run).found, Contains("checkpoint of step 2"));
  const Path file = run / "checkpoints/step-00002/model/model.safetensors";
  std::string content = read_file(file);
  content.back() = static_cast<char>(content.back() ^ 1);
  write_file_atomically(file, content);
  EXPECT_THAT(verify_sft_run(run).damages, Contains(HasSubstr("step-00002/model/model.safetensors")));
}

TEST_F(SftRuns, VerifyNamesAChangedLineOfTheMetrics) {
  const Path run = stopped("run");
  std::string lines = read_file(run / "metrics.jsonl");
  char& digit = lines[lines.find("\"loss\":") + 7];
  digit = static_cast<char>(digit ^ 1);
  write_file_atomically(run / "metrics.jsonl", lines);
  EXPECT_THAT(verify_sft_run(run).damages, testing::ElementsAre(HasSubstr("metrics.jsonl:1: lost or changed")));
  EXPECT_EQ(resume_sft(run), RunOutcome::done);
  EXPECT_TRUE(verify_sft_run(run).damages.empty());
}

TEST_F(SftRuns, VerifyFindsAFlippedWeightOfTheResult) {
  ASSERT_EQ(fine_tune(config("run")), RunOutcome::done);
  const Path run = world.path("run");
  for (const char* name : {"model/model.safetensors", "model/tokenizer.json"}) {
    const std::string content = read_file(run / name);
    std::string changed = content;
    changed[changed.size() - 9] = static_cast<char>(changed[changed.size() - 9] ^ 1);
    write_file_atomically(run / name, changed);
    EXPECT_THAT(verify_sft_run(run).damages, testing::ElementsAre(HasSubstr(name))) << name;
    EXPECT_THAT(test::error_of([&] { (void)fine_tune(config("run")); }), HasSubstr(name))
        << "nor is it done already";
    EXPECT_THAT(test::error_of([&] { (void)io::find_model(run); }), HasSubstr(name)) << "nor a model to use";
    write_file_atomically(run / name, content);
  }
  EXPECT_EQ(fine_tune(config("run")), RunOutcome::done);
  std::filesystem::remove_all(run / "model");
  EXPECT_THAT(verify_sft_run(run).damages, Contains(HasSubstr("model.safetensors): missing")));
}

// A kill between the result and the line about it.
TEST_F(SftRuns, AResultThatIsNotHeldYetIsHeldByTheNextStart) {
  stopped("run");
  const std::string before = read_file(world.path("run") / "inputs.json");
  ASSERT_EQ(fine_tune(config("run")), RunOutcome::done);
  write_file_atomically(world.path("run") / "inputs.json", before);
  EXPECT_EQ(fine_tune(config("run")), RunOutcome::done);
  EXPECT_THAT(read_file(world.path("run") / "inputs.json"), HasSubstr("\"result\""));
}

TEST_F(SftRuns, StartOverOnRequest) {
  ASSERT_EQ(fine_tune(config("through")), RunOutcome::done);
  const Path run = stopped("run");
  write_file_atomically(run / "checkpoints/step-00001/state.json", "{}");
  EXPECT_THAT(test::error_of([&] { (void)resume_sft(run); }),
              HasSubstr("`ropd resume " + run.string() + " --start-over`"));
  EXPECT_EQ(resume_sft(run, /*starts_over=*/true), RunOutcome::done);
  EXPECT_EQ(weights("run"), weights("through"));
  EXPECT_TRUE(std::filesystem::exists(run / "checkpoints.given-up-1/step-00001"));
  EXPECT_THAT(test::error_of([&] { (void)resume_sft(run, /*starts_over=*/true); }), HasSubstr("is done"));
}

TEST_F(SftRuns, AModelThatCannotBeTrainedLeavesNoFolder) {
  SftConfig wrong = config("run");
  wrong.model = world.path("pairs.jsonl").string();
  EXPECT_NE(test::error_of([&] { (void)fine_tune(wrong); }), "no error");
  wrong = config("run");
  std::filesystem::copy(world.path("student"), world.path("broken"));
  std::filesystem::resize_file(world.path("broken") / "model.safetensors", 100);
  wrong.model = world.path("broken").string();
  EXPECT_THAT(test::error_of([&] { (void)fine_tune(wrong); }), HasSubstr("model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(world.path("run")));
  EXPECT_EQ(fine_tune(config("run")), RunOutcome::done);
}

}  // namespace
}  // namespace ropd::train
