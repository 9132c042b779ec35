#include "train/verify_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sealed_json.h"
#include "support/tiny_world.h"

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

}  // namespace
}  // namespace ropd::train
