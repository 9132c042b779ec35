// The program under mpirun, as a user starts it: the same files for any number of processes, and an end with a
// name when one of them is killed, stopped or started with other settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ropd_source_directory.h>

#include <filesystem>
#include <map>

#include "base/json.h"
#include "shell.h"
#include "support/launcher.h"
#include "support/timeless.h"

namespace ropd {
namespace {

using test::Outcome;
using test::run_shell;
using testing::HasSubstr;

class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_mpirun()) GTEST_SKIP() << "no mpirun";
    const char* problems[] = {"2eacadd?", "3a?", "7bd?", "1cab?", "9dd?", "4eab?"};
    std::string lines;
    for (const char* problem : problems)
      lines += Json({{"id", problem}, {"problem", problem}, {"answer", "1"}}).dump() + "\n";
    write_file_atomically(folder_ / "queries.jsonl", lines);
    write_file_atomically(folder_ / "config.yaml", "student: " + kModels + "/student\nteacher: " + kModels +
                                                       "/teacher\noutput: unset\ndata: {queries: " +
                                                       (folder_ / "queries.jsonl").string() + R"(,
  prompt_suffix: "", select: {all: true}}
rollout: {max_response_tokens: 48, precision: f32}
train: {iterations: 3, responses_per_iteration: 12, minibatch: 6, learning_rate: 0.0001, teacher_precision: f32}
curriculum: {bank: {responses: 24}, stages: [{source: current, iterations: 2}, {source: initial}]}
trigger: {watch: always}
)");
  }
  const std::string kModels = ROPD_SOURCE_DIR "/lab/models";
  const test::TemporaryDirectory folder_;

  std::string train(const std::string& output, const std::string& more = "") const {
    return std::string(ROPD_PROGRAM) + " train " + (folder_ / "config.yaml").string() +
           " output=" + (folder_ / output).string() + " " + more;
  }
  std::string resume(const std::string& output) const {
    return std::string(ROPD_PROGRAM) + " resume " + (folder_ / output).string();
  }
  // Hashes of all results, by name; metrics without times.
  std::map<std::string, std::string> results(const std::string& output) const {
    const Path run = folder_ / output;
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
      const std::string name = entry.path().lexically_relative(run).generic_string();
      const bool is_last = name.starts_with("checkpoints/") && name.ends_with(".safetensors");
      if (entry.is_regular_file() && (is_last || name.starts_with("banks/") || name.starts_with("rollouts/")))
        found[name] = sha256_file(entry.path());
    }
    found["metrics.jsonl"] = test::timeless_metrics(run / "metrics.jsonl");
    return found;
  }
  // A run under mpirun in the background: `then` may use $mpirun, its id, once two steps are on file.
  Outcome disturbed(int ranks, const std::string& output, const std::string& then) const {
    return run_shell("cd " + folder_.path().string() + "\n" + test::mpirun(ranks) +
                     train(output, "train.iterations=200 --rank-timeout 3") + " & mpirun=$!\n" +
                     "until [ \"$(cat " + output + "/metrics.jsonl 2>/dev/null | wc -l)\" -gt 2 ]; do\n" +
                     "  kill -0 $mpirun || exit 99; sleep 0.02; done\n" + then + "\nwait $mpirun\n");
  }
};

TEST_F(Ranks, TrainingLeavesTheSameFilesForAnyNumberOfProcesses) {
  const Outcome alone = run_shell(train("alone"));
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  const auto expected = results("alone");
  ASSERT_GT(expected.size(), 5u);
  for (const int ranks : {2, 3, 4}) {
    const std::string name = std::to_string(ranks);
    const Outcome found = run_shell(test::mpirun(ranks) + train(name));
    ASSERT_EQ(found.exit_code, 0) << found.err;
    EXPECT_EQ(results(name), expected) << ranks << " ranks";
  }
}

TEST_F(Ranks, SamplingAndScoringGiveTheSameBytes) {
  const auto run = [&](const std::string& launcher, const std::string& name) {
    const std::string at = folder_ / name;
    const Outcome sampled = run_shell(
        launcher + ROPD_PROGRAM + " generate --model " + kModels + "/student --prompts " +
        (folder_ / "queries.jsonl").string() + " --n 7 --max-tokens 40 --precision f32 --logprobs --out " +
        at + ".jsonl && " + launcher + ROPD_PROGRAM + " score --model " + kModels + "/student --teacher " +
        kModels + "/teacher --rollouts " + at + ".jsonl --out " + at + ".scores.jsonl");
    EXPECT_EQ(sampled.exit_code, 0) << sampled.err;
    return read_file(at + ".jsonl") + read_file(at + ".scores.jsonl");
  };
  const std::string alone = run("", "alone");
  EXPECT_FALSE(alone.empty());
  EXPECT_EQ(run(test::mpirun(3), "three"), alone);
}

TEST_F(Ranks, KilledRankEndsTheRunAndAnotherNumberOfRanksGoesOn) {
  const Outcome killed = disturbed(3, "run", "kill -KILL $(pgrep -P $mpirun ropd | tail -1)");
  ASSERT_NE(killed.exit_code, 0);
  ASSERT_NE(killed.exit_code, 99) << killed.err;
  const Outcome resumed = run_shell(test::mpirun(2) + resume("run") + " train.iterations=12");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  ASSERT_EQ(run_shell(train("whole", "train.iterations=12")).exit_code, 0);
  EXPECT_EQ(results("run"), results("whole"));
}

TEST_F(Ranks, StoppedRankEndsTheRunWithALineThatNamesIt) {
  const Outcome stopped = disturbed(3, "run", "kill -STOP $(pgrep -P $mpirun ropd | tail -1)");
  EXPECT_NE(stopped.exit_code, 0);
  EXPECT_NE(stopped.exit_code, 99);
  EXPECT_THAT(stopped.err, testing::AllOf(HasSubstr("ropd: rank "), HasSubstr("was not heard of for")));
}

TEST_F(Ranks, StopRequestSavesAndIsExitCodeThree) {
  const Outcome stopped = disturbed(2, "run", "kill -USR1 $mpirun");
  EXPECT_EQ(stopped.exit_code, 3) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("ropd resume"));
  const Outcome resumed = run_shell(test::mpirun(3) + resume("run") + " train.iterations=12");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST_F(Ranks, OtherSettingsOnARankAreRefusedByName) {
  const Outcome refused =
      run_shell(test::mpirun(1) + train("run") + " : -n 1 " + train("run", "train.learning_rate=0.5"));
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("rank 1"), HasSubstr("train.learning_rate")));
}

TEST_F(Ranks, CommandsOfOneProcessRefuseALauncher) {
  const Outcome refused = run_shell(test::mpirun(2) + ROPD_PROGRAM + " inspect " + kModels + "/student");
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("without mpirun"));
}

TEST_F(Ranks, DoctorTellsOfEveryRank) {
  const Outcome found = run_shell(test::mpirun(2) + ROPD_PROGRAM + " doctor --json");
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const Json ranks = Json::parse(found.out);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_GT(ranks[1]["bytes_per_second"], 0);
  EXPECT_EQ(ranks[1]["rank"], 1);
}

}  // namespace
}  // namespace ropd
