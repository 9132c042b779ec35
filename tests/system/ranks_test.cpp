// The program under mpirun, as a user starts it: the same files for any number of processes, and an end with a
// name when one of them is killed, stopped, out of disk or started with other settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ropd_source_directory.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <vector>

#include "base/json.h"
#include "shell.h"
#include "support/launcher.h"
#include "support/timeless.h"

namespace ropd {
namespace {

using test::Outcome;
using test::run_shell;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

size_t lines_with(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.find(part) != std::string::npos;
  return count;
}

class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_mpirun()) GTEST_SKIP() << "no mpirun";
    const char* problems[] = {"2eacadd?", "3a?", "7bd?", "1cab?", "9dd?", "4eab?"};
    std::string lines;
    for (const char* problem : problems)
      lines += Json({{"id", problem}, {"problem", problem}, {"answer", "1"}}).dump() + "\n";
    write_file_atomically(folder_ / "queries.jsonl", lines);
    write_file_atomically(
        folder_ / "config.yaml",
        "student: " + kModels + "/student\nteacher: " + kModels +
            "/teacher\noutput: unset\ndata: {queries: " + (folder_ / "queries.jsonl").string() + R"(,
  prompt_suffix: "", select: {all: true}}
rollout: {max_response_tokens: 48, precision: f32}
train: {iterations: 3, responses_per_iteration: 12, minibatch: 6, learning_rate: 0.0001, teacher_precision: f32}
curriculum: {bank: {responses: 24}, stages: [{source: current, iterations: 2}, {source: initial}]}
trigger: {watch: always}
eval: {max_tokens: 32, data: )" +
            folder_.path().string() + ", suite: " + (folder_ / "suite.yaml").string() + "}\n");
    write_file_atomically(
        folder_ / "suite.yaml",
        "name: small\nprompt_suffix: \"\"\nbenchmarks: [{name: problems, file: queries.jsonl, "
        "samples: 2}]\n");
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
      const bool is_text = name.starts_with("banks/") || name.starts_with("rollouts/") ||
                           name.starts_with("samples/") || name.starts_with("eval/");
      if (entry.is_regular_file() && (is_last || is_text)) found[name] = sha256_file(entry.path());
    }
    found["metrics.jsonl"] = test::timeless_metrics(run / "metrics.jsonl");
    return found;
  }
  // A run under mpirun in the background: `then` may use $mpirun, its id, once two steps are on file.
  Outcome disturbed(int ranks, const std::string& output, const std::string& then,
                    const std::string& launcher_options = "") const {
    // With job control: without it a shell starts programs in the background deaf to SIGINT.
    return run_shell("set -m\ncd " + folder_.path().string() + "\n" + test::mpirun(ranks) + launcher_options +
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
  ASSERT_TRUE(expected.contains("eval/step-00006/responses.jsonl"));
  for (const int ranks : {1, 2, 3, 4}) {
    const std::string name = std::to_string(ranks);
    const Outcome found = run_shell(test::mpirun(ranks) + train(name));
    ASSERT_EQ(found.exit_code, 0) << found.err;
    EXPECT_EQ(results(name), expected) << ranks << " ranks";
  }
}

// What a command writes, alone and as three ranks.
TEST_F(Ranks, SamplingScoringEvaluatingAndDiagnosingGiveTheSameBytes) {
  write_file_atomically(
      folder_ / "diagnosis.yaml",
      "teacher: " + kModels + "/teacher\noutput: unset\nstudents: [{name: a, model: " + kModels +
          "/student}, {name: b, model: " + kModels + "/teacher}]\nsources: [{name: a, rollouts: " +
          (folder_ / "alone.jsonl").string() + "}]\npositions: 3\nprobes: {trajectories: 4, minibatch: 2}\n");
  const auto run = [&](const std::string& launcher, const std::string& name) {
    const std::string at = folder_ / name, program = launcher + ROPD_PROGRAM;
    const Outcome found = run_shell(
        "set -e\ncd " + folder_.path().string() + "\n" + program + " generate --model " + kModels +
        "/student --prompts queries.jsonl --n 7 --max-tokens 40 --precision f32 --logprobs --out " + at +
        ".jsonl\n" + program + " score --model " + kModels + "/student --teacher " + kModels +
        "/teacher --rollouts " + at + ".jsonl --out " + at + ".scores.jsonl\n" + program + " eval --model " +
        kModels + "/student --teacher " + kModels + "/teacher --suite suite.yaml --max-tokens 32 --out " +
        at + ".eval\n" + program + " diagnose --config diagnosis.yaml output=" + at + ".diagnosis\n");
    EXPECT_EQ(found.exit_code, 0) << found.err;
    std::map<std::string, std::string> files;
    for (const char* part : {".jsonl", ".scores.jsonl", ".eval/responses.jsonl", ".eval/samples.jsonl",
                             ".eval/summary.json", ".diagnosis/diagnosis.json", ".diagnosis/samples.jsonl"})
      files[part] = sha256_file(at + part);
    return files;
  };
  const auto alone = run("", "alone");
  EXPECT_EQ(run(test::mpirun(3), "three"), alone);
}

TEST_F(Ranks, StudyWithSeveralWorkersGivesTheSameTablesAndWeights) {
  write_file_atomically(folder_ / "study.yaml",
                        "name: small\nbase: config.yaml\noutput: unset\nset: [eval.suite=null]\nmethods:\n"
                        "  - {name: current, stages: [{source: current}]}\n"
                        "  - {name: initial, stages: [{source: initial}]}\n"
                        "evaluations:\n  - {name: small, suite: " +
                            (folder_ / "suite.yaml").string() + ", data: " + folder_.path().string() +
                            ", max_tokens: 16, budgets: [16], precision: f32}\n");
  const auto run = [&](const std::string& launcher, const std::string& output) {
    const Outcome found = run_shell(launcher + ROPD_PROGRAM + " study " + (folder_ / "study.yaml").string() +
                                    " output=" + (folder_ / output).string());
    EXPECT_EQ(found.exit_code, 0) << found.err;
    std::map<std::string, std::string> result = {{"tables", found.out}};
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / output))
      if (entry.path().filename() == "model.safetensors" || entry.path().filename() == "responses.jsonl")
        result[entry.path().lexically_relative(folder_ / output)] = sha256_file(entry.path());
    return result;
  };
  const auto alone = run("", "alone");
  EXPECT_GT(alone.size(), 3u);
  EXPECT_EQ(run(test::mpirun(3) + "-q ", "three"), alone);
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
  const Outcome stopped = disturbed(2, "run", "kill -USR1 $mpirun");  // what Slurm sends before the end
  EXPECT_EQ(stopped.exit_code, 3) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("ropd resume"));
  const Outcome resumed = run_shell(test::mpirun(3) + resume("run") + " train.iterations=12");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

// mpirun sends its ranks SIGCONT first and SIGKILL twice this timeout later; it waits all of that itself.
TEST_F(Ranks, InterruptAndTerminationOfTheLauncherSave) {
  for (const std::string signal : {"INT", "TERM"}) {
    const Outcome stopped =
        disturbed(2, signal, "kill -" + signal + " $mpirun", "--mca odls_base_sigkill_timeout 5 ");
    EXPECT_NE(stopped.exit_code, 0);
    EXPECT_THAT(stopped.err, testing::AllOf(HasSubstr("ropd resume"), Not(HasSubstr("seconds to save"))));
    const Outcome resumed = run_shell(test::mpirun(3) + resume(signal) + " train.iterations=12");
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_THAT(resumed.err, HasSubstr("seconds to save"));
  }
  ASSERT_EQ(run_shell(train("whole", "train.iterations=12")).exit_code, 0);
  EXPECT_EQ(results("INT"), results("whole"));
  EXPECT_EQ(results("TERM"), results("whole"));
}

// A limit of file sizes stands for the disk: of rank 1, which keeps its slices in a scratch file, then of the leader,
// whose checkpoints no longer fit.
TEST_F(Ranks, FullDiskOfOneRankEndsTheRunByNameAndItGoesOn) {
  const auto limited = [&](const std::string& command) {
    return "bash -c 'ulimit -f 100; exec " + command + "'";
  };
  const std::string stored = train("run", "trigger.storage=file");
  const Outcome scratch = run_shell(test::mpirun(1) + stored + " : -n 1 " + limited(stored));
  EXPECT_NE(scratch.exit_code, 0);
  EXPECT_THAT(scratch.err, ContainsRegex("ropd: rank 1 on [^ ]+: .*too large"));
  std::filesystem::remove_all(folder_ / "run");

  const Outcome leader = run_shell(test::mpirun(1) + limited(train("run")) + " : -n 1 " + train("run"));
  EXPECT_NE(leader.exit_code, 0);
  EXPECT_THAT(leader.err, HasSubstr("too large"));
  const Outcome resumed = run_shell(test::mpirun(2) + resume("run"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  ASSERT_EQ(run_shell(train("whole")).exit_code, 0);
  EXPECT_EQ(results("run"), results("whole"));
}

TEST_F(Ranks, OtherSettingsOnARankAreRefusedByName) {
  const Outcome refused =
      run_shell(test::mpirun(1) + train("run") + " : -n 1 " + train("run", "train.learning_rate=0.5"));
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("rank 1"), HasSubstr("train.learning_rate")));
}

// Two machines whose models lie under the same path, a bit of one of them apart.
TEST_F(Ranks, OtherModelFilesOnARankAreRefusedByName) {
  for (const std::string changed : {"student", "teacher"}) {
    const std::string here = folder_ / (changed + " here"), there = folder_ / (changed + " there");
    for (const std::string& machine : {here, there}) {
      std::filesystem::create_directory(machine);
      std::filesystem::copy(kModels, machine + "/models", std::filesystem::copy_options::recursive);
    }
    const std::string weights = there + "/models/" + changed + "/model.safetensors";
    std::string content = read_file(weights);
    content[content.size() - 4] ^= 1;
    write_file_atomically(weights, content);
    const std::string command = train("run", "student=models/student teacher=models/teacher");
    const Outcome refused = run_shell(test::mpirun(1) + "-wdir '" + here + "' " + command +
                                      " : -n 1 -wdir '" + there + "' " + command);
    EXPECT_NE(refused.exit_code, 0);
    EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("rank 1"), HasSubstr(changed + " files")));
    std::filesystem::remove_all(folder_ / "run");
  }
}

// A limit of its address space stands for a rank's machine: the cache of 2 GB that the leader reserves is too large.
TEST_F(Ranks, RankOutOfMemoryEndsTheRunByName) {
  const std::string command = train("run",
                                    "rollout.memory_gb=2 rollout.max_response_tokens=1000 "
                                    "curriculum.bank.responses=6000 train.activation_memory_gb=0.01");
  const Outcome ended =
      run_shell(test::mpirun(1) + command + " : -n 1 bash -c 'ulimit -v 2200000; exec " + command + "'");
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.err, ContainsRegex("ropd: rank 1 on [^ ]+: .*(cannot reserve|out of memory)"));
}

TEST_F(Ranks, CommandsOfOneProcessRefuseSeveralRanksInOneLine) {
  const std::string model = kModels + "/student", config = (folder_ / "config.yaml").string();
  for (const std::string& command : std::vector<std::string>{
           "inspect " + model, "sft " + config, "lab --fast --out " + (folder_ / "lab").string(),
           "train " + config + " --dry-run", "eval --rescore --model " + model + " --suite three --out x"}) {
    const Outcome refused = run_shell(test::mpirun(3) + "-q " + ROPD_PROGRAM + " " + command);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_EQ(lines_with(refused.err, "is one process; start it without mpirun"), 1u) << refused.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "lab"));
  EXPECT_EQ(run_shell(test::mpirun(1) + ROPD_PROGRAM + " inspect " + model).exit_code, 0)
      << "one rank is no crew";
}

TEST_F(Ranks, WhatIsWrongForEverybodyIsToldOnce) {
  const std::string model = kModels + "/student", prompts = (folder_ / "queries.jsonl").string();
  for (const std::string& command : std::vector<std::string>{
           "train " + (folder_ / "config.yaml").string() + " train.learnin_rate=1",
           "generate --model nowhere --prompts " + prompts + " --out " + (folder_ / "out.jsonl").string(),
           "eval --model " + model + " --suite nowhere.yaml --out " + (folder_ / "eval").string(),
           "diagnose --config nowhere.yaml", "resume nowhere"}) {
    const Outcome refused = run_shell(test::mpirun(3) + "-q " + ROPD_PROGRAM + " " + command);
    EXPECT_EQ(refused.exit_code, 1) << command;
    EXPECT_EQ(lines_with(refused.err, "ropd: "), 1u) << refused.err;
  }
}

TEST_F(Ranks, DoctorTellsOfEveryRank) {
  const Outcome found = run_shell(test::mpirun(2) + ROPD_PROGRAM + " doctor --json --threads 3");
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const Json ranks = Json::parse(found.out);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_GT(ranks[1]["bytes_per_second"], 0);
  EXPECT_EQ(ranks[1]["rank"], 1);
  EXPECT_EQ(ranks[1]["threads"], 3) << "those that it takes, not those it might";
}

}  // namespace
}  // namespace ropd
