// What a user expects of a command line without reading about it: pipes, ~, outputs that stay, help that names
// every option, completion, one line about what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ropd_source_directory.h>

#include <filesystem>

#include "base/file.h"
#include "io/checkpoint.h"
#include "io/rollout_file.h"
#include "support/model_files.h"
#include "support/run_fixture.h"
#include "support/test_data.h"
#include "system/shell.h"

namespace ropd {
namespace {

using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Manners : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    write_file_atomically(folder_ / name, content);
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  // Lines of bash in the folder, where `ropd` is the program.
  Outcome shell(const std::string& lines) const {
    return test::run_shell("ropd() { " + std::string(ROPD_PROGRAM) + " \"$@\"; }\ncd " +
                           folder_.path().string() + "\n" + lines);
  }
  void expect_refused(const std::string& line, int exit_code, const std::string& text) const {
    const Outcome outcome = shell(line);
    EXPECT_EQ(outcome.exit_code, exit_code) << line << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(text)) << line;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  const test::TemporaryDirectory folder_;
};

constexpr const char* kGenerated =
    "{\"query_id\":\"a\",\"text\":\"so \\\\boxed{12}\",\"answer\":\"12\"}\n"
    "{\"query_id\":\"b\",\"text\":\"so \\\\boxed{3}\",\"answer\":\"12\"}\n";

TEST_F(Manners, GradeReadsWhatGenerateWrites) {
  write("in.jsonl", kGenerated);
  const Outcome outcome = shell("ropd grade --in in.jsonl --out out.jsonl --quiet");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 lines, 1 correct"));
}

TEST_F(Manners, ADashIsAPipe) {
  write("in.jsonl", kGenerated);
  const Outcome piped = shell("cat in.jsonl | ropd grade --in - --out - | cat");
  EXPECT_THAT(piped.out, AllOf(HasSubstr("\"correct\":true"), HasSubstr("\"correct\":false")));
  EXPECT_THAT(piped.out, Not(HasSubstr("lines,"))) << "only the data";
  // Standard output may be a file that holds something already.
  const Outcome kept = shell("echo before > kept; ropd grade --in - --out - < in.jsonl >> kept; cat kept");
  EXPECT_THAT(kept.out, AllOf(testing::StartsWith("before\n"), HasSubstr("\"correct\":true")));
  EXPECT_FALSE(std::filesystem::exists(at("-")));
  const Outcome substituted = shell("ropd grade --in <(cat in.jsonl) --out - ");
  EXPECT_THAT(substituted.out, HasSubstr("\"correct\":true")) << substituted.err;
}

TEST_F(Manners, ANamedPipeIsRefusedInsteadOfWaitingForIt) {
  expect_refused("mkfifo pipe; timeout 20 " ROPD_PROGRAM " grade --in pipe --out out.jsonl", 1,
                 "pipe: is a pipe");
  expect_refused("timeout 20 " ROPD_PROGRAM " train pipe", 1, "pipe: is a pipe");
}

TEST_F(Manners, TheHomeFolderIsKnownBehindAnEqualsSign) {
  write("in.jsonl", kGenerated);
  const Outcome outcome = shell("HOME=" + at("") + " ropd grade --in=~/in.jsonl --out=~/out.jsonl --quiet");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(at("out.jsonl")));
}

TEST_F(Manners, AReportStaysUnlessItMayBeReplaced) {
  test::write_fake_run(at("run"), {.name = "run", .accuracy = {10, 20, 30, 40, 50}, .hostile = {}});
  ASSERT_EQ(shell("ropd report run --out report.html").exit_code, 0);
  expect_refused("ropd report run --out report.html", 1, "report.html: exists already; --overwrite");
  EXPECT_EQ(shell("ropd report run --out report.html --overwrite").exit_code, 0);
}

class MannersOfModels : public Manners {
 protected:
  MannersOfModels() {
    test::write_tiny_model(folder_ / "model", test::tiny_config("Qwen3ForCausalLM"));
    std::vector<Rollout> rollouts;
    for (uint32_t i = 0; i < 40; ++i) {
      Rollout rollout;
      rollout.query_id = "q" + std::to_string(i);
      rollout.prompt_ids = {1, 3};
      rollout.response_ids = {static_cast<Token>(4 + i % 20), 7, 2};
      rollouts.push_back(rollout);
    }
    io::write_rollouts(folder_ / "bank.jsonl", rollouts);
  }
};

TEST_F(MannersOfModels, AnInterruptedScoreGoesOn) {
  const std::string score = "ropd score --model model --rollouts bank.jsonl --batch-tokens 5 --threads 1 ";
  ASSERT_EQ(shell(score + "--out whole.jsonl").exit_code, 0);
  // The limit on file size stands for a full disk.
  const Outcome full = shell("( trap \"\" XFSZ; ulimit -f 8; " + score + "--quiet --out out.jsonl )");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("out.partial.jsonl"));
  const Outcome rest = shell(score + "--out out.jsonl");
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("of 40 scores are there, going on"));
  EXPECT_EQ(read_file(at("out.jsonl")), read_file(at("whole.jsonl")));
  EXPECT_FALSE(std::filesystem::exists(at("out.partial.jsonl")));
}

TEST_F(MannersOfModels, ScoresCanBePiped) {
  const Outcome outcome =
      shell("head -n 2 bank.jsonl | ropd score --model model --rollouts - --out - | wc -l");
  EXPECT_EQ(outcome.out, "2\n") << outcome.err;
}

TEST_F(MannersOfModels, NumbersOutOfRangeAreNamedWithTheRange) {
  const std::string generate = "ropd generate --model model --prompts bank.jsonl --out out.jsonl ";
  expect_refused(generate + "--seed -5", 2, "is -5, expected a whole number from 0 to 9007199254740991");
  expect_refused(generate + "--memory-gb 1e30", 2,
                 "is 1e30, expected auto or a number above 0 and below 1e6");
  expect_refused("ropd score --model model --rollouts bank.jsonl --out s.jsonl --temperature 1e-40", 2,
                 "between 1e-6 and 1e6");
}

TEST_F(Manners, InspectTellsWhichCheckpointsAreWhole) {
  write_file_atomically((std::filesystem::create_directory(at("run")), at("run/config.yaml")),
                        "student: a\n");
  write("run/environment.json", "{}\n");
  io::CheckpointStore store(folder_ / "run" / "checkpoints");
  for (const uint64_t step : {4, 8})
    store.save(step, {.keep = 0, .keep_steps = {}},
               [](const Path& folder) { write_file_atomically(folder / "state.json", "{\"a\": 1}\n"); });
  write("run/checkpoints/step-00008/state.json", "{\"a\": 2}\n");
  const Outcome outcome = shell("ropd inspect run");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("step-00004 +whole"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("step-00008 +DAMAGED.*state.json"));
}

TEST_F(Manners, InspectKnowsAFineTuningRun) {
  std::filesystem::create_directory(at("run"));
  write("run/config.yaml", "model: a\ndata: b.jsonl\nseed: 1\n");
  write("run/environment.json", "{}\n");
  write("run/metrics.jsonl", "{\"step\": 1, \"loss\": 2.5}\n{\"step\": 2, \"loss\": 2.25}\n");
  const Outcome outcome = shell("ropd inspect run --json");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\"of\":\"ropd sft\""), HasSubstr("\"steps\":2"))) << outcome.err;
}

TEST_F(Manners, HelpOfEveryCommandNamesTheCommonOptions) {
  for (const char* command : {"train", "score", "data", "data prepare", "watch"})
    EXPECT_THAT(shell(std::string("ropd ") + command + " --help").out,
                AllOf(HasSubstr("--threads"), HasSubstr("--quiet"), HasSubstr("--json")))
        << command;
}

TEST_F(Manners, CompletionKnowsTheCommandsInsideOfData) {
  const auto completed = [&](const std::string& words, int index) {
    return shell("source <(ropd completion bash); COMP_WORDS=(" + words +
                 ") COMP_CWORD=" + std::to_string(index) + "; _ropd; echo ${COMPREPLY[@]}")
        .out;
  };
  EXPECT_EQ(completed("ropd da", 1), "data\n");
  EXPECT_EQ(completed("ropd data pr", 2), "prepare\n");
  EXPECT_EQ(completed("ropd data prepare --no", 3), "--no-han\n");
  EXPECT_EQ(completed("ropd score --tea", 2),
            "--teacher --teacher-base --teacher-temperature --teacher-memory-gb\n");
  for (const char* shell_name : {"zsh", "fish"})
    EXPECT_THAT(shell(std::string("ropd completion ") + shell_name).out, HasSubstr("no-han"));
}

// The laboratory's models have all that an evaluation needs.
TEST_F(Manners, AnEvaluationStaysUnlessItMayBeReplaced) {
  write("questions.jsonl", "{\"id\": \"a\", \"problem\": \"2eacadd?\", \"answer\": \"6\"}\n");
  write(
      "suite.yaml",
      "name: one\nprompt_suffix: \"\"\nbenchmarks:\n  - {name: first, file: questions.jsonl, samples: 1}\n");
  const std::string eval = "ropd eval --model " ROPD_SOURCE_DIR
                           "/lab/models/student --suite suite.yaml --max-tokens 16 --out eval --quiet ";
  ASSERT_EQ(shell(eval + "--budgets 8,16").exit_code, 0);
  const std::string before = read_file(at("eval/summary.json"));
  EXPECT_EQ(shell(eval + "--budgets 8,16").exit_code, 0) << "the same again";
  expect_refused(eval + "--budgets 4", 1, "holds the results of other budgets or another grader");
  EXPECT_EQ(read_file(at("eval/summary.json")), before);
  expect_refused(eval + "--budgets 8,16 --seed 2", 1, "--overwrite");
  EXPECT_EQ(shell(eval + "--budgets 4 --seed 2 --overwrite").exit_code, 0);
  EXPECT_NE(read_file(at("eval/summary.json")), before);
}

}  // namespace
}  // namespace ropd
