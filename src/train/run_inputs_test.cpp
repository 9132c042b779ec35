#include "train/run_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/whole_run.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(RunInputs, AreTheFilesOfTheConfiguration) {
  const test::TinyWorld world;
  const Path bank = world.write_bank("bank.jsonl", test::random_rollouts(20, 37, 1));
  const TrainConfig config = world.config(
      "run",
      {"curriculum.stages=[{source: current, iterations: 2}, {source: bank, path: " + bank.string() + "}]"});
  const InputFiles files = input_files(config);
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files.at("queries")[0].path, config.data.queries);
  EXPECT_EQ(files.at("bank of stage 2")[0].path, bank);
  std::vector<std::string> names;
  for (const auto& file : files.at("teacher")) names.push_back(file.name);
  EXPECT_THAT(names, testing::IsSupersetOf({"config.json", "model.safetensors", "tokenizer.json"}));
  EXPECT_THAT(names, testing::Not(testing::Contains("README.md")));
}

TEST(RunInputs, ABankIsCheckedAtTheStart) {
  const test::TinyWorld world;
  const auto refused = [&](const std::vector<Rollout>& rollouts) {
    const Path bank = world.write_bank("bank.jsonl", rollouts);
    return error_of([&] {
      (void)load_inputs(
          world.config("run", {"curriculum.stages=[{source: bank, path: " + bank.string() + "}]"}));
    });
  };
  EXPECT_EQ(refused(test::random_rollouts(10, 37, 1)), "no error");
  EXPECT_THAT(refused(test::random_rollouts(9, 37, 1)), HasSubstr("holds 9 rollouts, an iteration takes 10"));
  auto foreign = test::random_rollouts(10, 37, 1);
  foreign[3].response_ids = {37};
  EXPECT_THAT(refused(foreign), HasSubstr("bank.jsonl:4"));
}

TEST(RunInputs, ADamagedBankIsRefusedAtTheStart) {
  const test::TinyWorld world;
  test::run_to_the_end(world.config("made", {"train.iterations=1", "curriculum.stages=[{source: initial}]"}));
  const Path bank = world.path("made") / "banks" / "initial.jsonl";
  const auto refusal = [&] {
    return error_of([&] {
      (void)load_inputs(
          world.config("run", {"curriculum.stages=[{source: bank, path: " + bank.string() + "}]"}));
    });
  };
  EXPECT_EQ(refusal(), "no error");
  std::string text = read_file(bank);
  const size_t digit = text.find("\"response_ids\":[") + 16;
  text[digit] = text[digit] == '1' ? '2' : '1';
  write_file_atomically(bank, text);
  EXPECT_THAT(refusal(), HasSubstr(bank.string() + ": its content is not what its description says"));
}

TEST(RunInputs, ABenchmarkIsAnInput) {
  const test::TinyWorld world;
  write_file_atomically(world.path("suite.yaml"),
                        "name: tiny\nbenchmarks:\n  - {name: first, file: queries.jsonl}\n"
                        "  - {name: second, file: absent.jsonl}\n");
  TrainConfig config = world.config(
      "run", {"eval.suite=" + world.path("suite.yaml").string(), "eval.data=" + world.path("").string()});
  const InputFiles files = input_files(config);
  EXPECT_EQ(files.at("eval.suite")[0].path, world.path("suite.yaml"));
  EXPECT_EQ(files.at("benchmark first")[0].path, world.path("queries.jsonl"));
  EXPECT_FALSE(files.contains("benchmark second")) << "who loads the suite tells of it";
  config.eval.suite = "three";
  std::filesystem::copy_file(world.path("queries.jsonl"), world.path("amc23.jsonl"));
  EXPECT_EQ(input_files(config).at("benchmark amc23")[0].path, world.path("amc23.jsonl"));
}

TEST(RunInputs, EveryFileOfAMixIsAnInputAndNeedsTheRowsOfItsShare) {
  const test::TinyWorld world;
  world.write_bank("a.jsonl", test::random_rollouts(9, 37, 1));
  world.write_bank("b.jsonl", test::random_rollouts(4, 37, 2));
  const auto config = [&](const std::string& ratios) {
    return world.config("run",
                        {"curriculum.stages=[{source: mix, of: [\"bank:" + world.path("a.jsonl").string() +
                         "\", \"bank:" + world.path("b.jsonl").string() + "\"], " + ratios + "}]"});
  };
  const InputFiles files = input_files(config("ratio: [3, 2]"));
  EXPECT_EQ(files.at("bank of stage 1")[0].path, world.path("a.jsonl"));
  EXPECT_EQ(files.at("bank 2 of stage 1")[0].path, world.path("b.jsonl"));
  EXPECT_EQ(error_of([&] { (void)load_inputs(config("ratio: [3, 2]")); }), "no error");
  EXPECT_THAT(error_of([&] { (void)load_inputs(config("ratio: [1, 1]")); }),
              HasSubstr("b.jsonl: holds 4 rollouts, an iteration takes 5"));
  EXPECT_THAT(error_of([&] { (void)load_inputs(config("ratio: [3, 2], ratio_to: [1, 0]")); }),
              HasSubstr("a.jsonl: holds 9 rollouts, an iteration takes 10"));
  TrainConfig relative = config("ratio: [3, 2]");
  relative.curriculum.stages[0].of = {"bank:a.jsonl", "current"};
  EXPECT_EQ(with_paths_from(relative, world.path("")).curriculum.stages[0].of[0],
            "bank:" + (world.path("") / "a.jsonl").string());
}

TEST(RunInputs, RelativePathsBeginWhereTheRunBegan) {
  const test::TinyWorld world;
  TrainConfig config = world.config("run");
  config.student = "student";
  config.teacher = "not-there";
  const TrainConfig found = with_paths_from(config, world.path(""));
  EXPECT_EQ(found.student, world.path("student").string());
  EXPECT_EQ(found.teacher, "not-there");
  EXPECT_EQ(found.data.queries, config.data.queries) << "absolute";
  EXPECT_EQ(with_paths_from(config, std::filesystem::current_path()).student, "student");
}

}  // namespace
}  // namespace ropd::train
