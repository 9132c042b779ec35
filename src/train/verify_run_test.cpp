#include "train/verify_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sealed_json.h"
#include "support/whole_run.h"

namespace ropd::train {
namespace {

// What it finds in runs is in session_integrity_test.cpp.
TEST(VerifyRun, OfNoRunIsAnError) {
  const test::TemporaryDirectory directory;
  EXPECT_THAT(test::error_of([&] { (void)verify_run(directory.path()); }),
              testing::HasSubstr("has no config.yaml"));
}

TEST(VerifyRun, NamesEvaluationsWhoseResponsesWereChanged) {
  const test::TemporaryDirectory run;
  write_file_atomically(run / "config.yaml", "seed: 1\n");
  for (const char* name : {"whole", "changed"}) {
    std::filesystem::create_directories(run / "eval" / name);
    write_file_atomically(run / "eval" / name / "responses.jsonl", "{}\n");
    write_file_atomically(run / "eval" / name / "generation.json",
                          sealed({{"responses_sha256", sha256("{}\n")}}).dump());
  }
  write_file_atomically(run / "eval/changed/responses.jsonl", "{ }\n");
  const Verification result = verify_run(run.path());
  EXPECT_THAT(result.found, testing::Contains("evaluation whole"));
  ASSERT_EQ(result.damages.size(), 1u);
  EXPECT_THAT(result.damages[0], testing::HasSubstr("eval/changed/responses.jsonl: is not what was sampled"));
}

TEST(VerifyRun, FollowsLinksToEvaluationsAsItIsTold) {
  const test::TemporaryDirectory run;
  write_file_atomically(run / "config.yaml", "seed: 1\n");
  std::filesystem::create_directories(run / "elsewhere");
  std::filesystem::create_directories(run / "eval");
  write_file_atomically(run / "elsewhere/generation.json", "[]");
  std::filesystem::create_directory_symlink("../elsewhere", run / "eval/linked");
  EXPECT_EQ(verify_run(run.path()).damages.size(), 1u);
  EXPECT_EQ(verify_run(run.path(), {.follows_links = false}).damages.size(), 0u);
}

TEST(VerifyRun, NamesASuiteThatCannotBeReadAndGoesOn) {
  const test::TinyWorld world;
  write_file_atomically(world.path("suite.yaml"),
                        "name: tiny\nprompt_suffix: \"\"\nbenchmarks:\n"
                        "  - {name: first, file: queries.jsonl}\n");
  test::run_to_the_end(world.config(
      "run", {"train.iterations=1", "curriculum.stages=[{source: current}]", "eval.max_tokens=4",
              "eval.suite=" + world.path("suite.yaml").string(), "eval.data=" + world.path("").string()}));
  EXPECT_THAT(verify_run(world.path("run")).damages, testing::IsEmpty());
  write_file_atomically(world.path("suite.yaml"), "name: [");
  const Verification result = verify_run(world.path("run"));
  EXPECT_THAT(result.damages, testing::Each(testing::HasSubstr("suite.yaml")));
  EXPECT_THAT(result.found, testing::IsSupersetOf({"checkpoint of step 3", "metrics.jsonl"}));
}

}  // namespace
}  // namespace ropd::train
