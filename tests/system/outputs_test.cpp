// What a command reads, it does not write onto; and what it prints is what it looks like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run_fixture.h"
#include "support/test_data.h"
#include "support/tiny_world.h"
#include "system/shell.h"

namespace ropd {
namespace {

using test::run_ropd;
using testing::HasSubstr;

TEST(ReportOutput, IsNoFileOfARun) {
  const test::TemporaryDirectory folder;
  const auto at = [&](const std::string& name) { return (folder / name).string(); };
  test::write_fake_run(folder / "run", {.name = "run", .accuracy = {10, 20, 30, 40, 50}, .hostile = {}});
  std::filesystem::create_directory(folder / "elsewhere");
  std::filesystem::rename(folder / "run/eval", folder / "elsewhere/eval");  // as a study links them
  std::filesystem::create_directory_symlink(folder / "elsewhere/eval", folder / "run/eval");
  std::string summary;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "elsewhere"))
    if (entry.path().filename() == "summary.json") summary = entry.path().string();
  ASSERT_FALSE(summary.empty());
  for (const std::string& file : {at("run/metrics.jsonl"), at("run/config.yaml"), summary})
    for (const std::string& runs : {at("run"), "a=" + at("run")}) {
      const std::string before = read_file(file);
      const auto outcome = run_ropd("report " + runs + " --overwrite --out " + file);
      EXPECT_EQ(outcome.exit_code, 1) << file;
      EXPECT_THAT(outcome.err, HasSubstr(file + ": is an input of this command"));
      EXPECT_EQ(read_file(file), before);
    }
  // A page may lie in its run, and be written anew.
  const std::string page = "report " + at("run") + " --out " + at("run/report.html");
  EXPECT_EQ(run_ropd(page).exit_code, 0);
  EXPECT_EQ(run_ropd(page + " --overwrite").exit_code, 0);
}

TEST(StudyOutput, ShowsControlCharactersOfNames) {
  const test::TinyWorld world;
  write_file_atomically(world.path("base.yaml"), config_to_yaml(world.config("unused")));
  write_file_atomically(world.path("study.yaml"),
                        "name: tiny\nbase: base.yaml\noutput: " + world.path("study").string() +
                            "\nmethods:\n  - {name: \"cur\\e[2Jrent\", stages: [{source: current}]}\n");
  for (const char* what : {" --status", " --dry-run"}) {
    const auto outcome = run_ropd("study " + world.path("study.yaml").string() + what);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, testing::AllOf(HasSubstr("cur␛[2Jrent"), testing::Not(HasSubstr("\x1b"))));
  }
}

}  // namespace
}  // namespace ropd
