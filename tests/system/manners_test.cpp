// What a user expects of a command line without reading about it: pipes, ~, outputs that stay, help that names
// every option, completion, one line about what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ropd_source_directory.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "base/terminal_line.h"
#include "io/checkpoint.h"
#include "io/rollout_file.h"
#include "support/model_files.h"
#include "support/run_fixture.h"
#include "support/test_data.h"
#include "system/shell.h"
#include "torture/traced_program.h"

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
  expect_refused("mkfifo pipe; timeout 300 " ROPD_PROGRAM " grade --in pipe --out out.jsonl", 1,
                 "pipe: is a pipe");
  expect_refused("timeout 300 " ROPD_PROGRAM " train pipe", 1, "pipe: is a pipe");
}

TEST_F(Manners, AnOutputThatIsAPipeNobodyReadsIsRefusedInsteadOfWaitingForIt) {
  write("in.jsonl", kGenerated);
  expect_refused("mkfifo pipe; timeout 300 " ROPD_PROGRAM " grade --quiet --in in.jsonl --out pipe", 1,
                 "pipe: is a pipe that nobody reads");
  const Outcome read = shell(
      "cat pipe > read & exec 3> pipe; ropd grade --quiet --in in.jsonl --out pipe; "
      "exec 3>&-; wait; cat read");
  EXPECT_THAT(read.out, HasSubstr("\"correct\":true")) << read.err;
}

TEST_F(Manners, AMessageIsOneLineWhateverItQuotes) {
  const std::string line = "{\"id\": \"a\\nropd: all is well\", \"problem\": \"x\", \"answer\": \"1\"}\n";
  write("twice.jsonl", line + line);
  expect_refused("ropd data order --in twice.jsonl --out out.jsonl --seed 1", 1, "a␊ropd: all is well");
}

TEST_F(Manners, ResultsShowNoTerminalCodesOfTheData) {
  write("in.jsonl", "{\"id\": \"\\u001b[2J\\nx\", \"problem\": \"2eacadd?\", \"answer\": \"4\"}\n");
  const Outcome overlap = shell("ropd data overlap --in in.jsonl --benchmark in.jsonl");
  EXPECT_THAT(overlap.out, AllOf(HasSubstr("␛[2J␊x"), Not(HasSubstr("\x1b")))) << overlap.err;
  write("run.yaml", "student: " ROPD_SOURCE_DIR "/lab/models/student\nteacher: " ROPD_SOURCE_DIR
                    "/lab/models/teacher\noutput: run\n"
                    "data: {queries: in.jsonl, select: {all: true}, prompt_suffix: \"\"}\n"
                    "rollout: {max_response_tokens: 16, precision: f32}\n"
                    "train: {iterations: 1, responses_per_iteration: 4, minibatch: 4}\n"
                    "curriculum: {stages: [{source: current}]}\n");
  const Outcome dry = shell("ropd train run.yaml --dry-run");
  EXPECT_THAT(dry.out, AllOf(HasSubstr("first prompt ␛[2J␊x, "), Not(HasSubstr("\x1b")))) << dry.err;
  std::filesystem::create_directory(at("old"));
  write("old/config.yaml", "student: \"\\e[2J\"\n");
  write("old/environment.json", "{}\n");
  const Outcome inspected = shell("ropd inspect old");
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("␛[2J"), Not(HasSubstr("\x1b")))) << inspected.err;
}

TEST_F(Manners, ANameThatIsNoTextIsShownInJsonAllTheSame) {
  write("in.jsonl", "{\"id\": \"a\", \"problem\": \"x\", \"text\": \"2ea\", \"answer\": \"1\"}\n");
  const Outcome outcome = shell(
      "cp in.jsonl $'in\\xff.jsonl'\n"
      "ropd --json data stats --in $'in\\xff.jsonl'\n"
      "ropd --json tokenize --model " ROPD_SOURCE_DIR
      "/lab/models/student --in in.jsonl --out $'ids\\xff.jsonl'\n"
      "mkdir -p $'run/banks/\\xff.jsonl'; echo 'student: a' > run/config.yaml; echo {} > "
      "run/environment.json\n"
      "ropd inspect run");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\"in\":\"in\uFFFD.jsonl\""),
                                 HasSubstr("\"out\":\"ids\uFFFD.jsonl\""), HasSubstr("[\"\uFFFD.jsonl\"]")));
}

TEST_F(Manners, FilesOfAnotherShapeAreNamed) {
  test::write_tiny_model(folder_ / "model", test::tiny_config("Qwen3ForCausalLM"));
  write("model/tokenizer.json", "[]");
  expect_refused("ropd inspect model", 1, "tokenizer.json: is of type array, expected an object");
  write("model/tokenizer.json", "{\"model\": {\"type\": 5, \"vocab\": 3}}");
  EXPECT_EQ(shell("ropd inspect model").exit_code, 0);
  write("questions.jsonl", "{\"id\": \"a\", \"problem\": \"2eacadd?\", \"answer\": \"6\"}\n");
  write("suite.yaml", "name: one\nprompt_suffix: \"\"\nbenchmarks:\n  - {name: a, file: questions.jsonl}\n");
  std::filesystem::create_directory(at("eval"));
  for (const char* summary : {"[]", "{\"format\": 1, \"budgets\": [{\"budget\": \"x\"}]}"}) {
    write("eval/summary.json", summary);
    expect_refused("ropd eval --model " ROPD_SOURCE_DIR
                   "/lab/models/student --suite suite.yaml --max-tokens 16 --out eval --quiet",
                   1, "ropd: eval/summary.json: ");
  }
}

TEST_F(Manners, WholeNumbersAreReadAsTheyAreWritten) {
  std::string queries;
  for (int i = 0; i < 12; ++i)
    queries += "{\"id\": \"" + std::to_string(i) + "\", \"problem\": \"x\", \"answer\": \"1\"}\n";
  write("in.jsonl", queries);
  const std::string select = "ropd data select --quiet --overwrite --in in.jsonl --out - ";
  const auto num_selected = [&](const std::string& options) {
    const Outcome outcome = shell(select + options);
    EXPECT_EQ(outcome.exit_code, 0) << options << outcome.err;
    return std::count(outcome.out.begin(), outcome.out.end(), '\n');
  };
  EXPECT_EQ(num_selected("--first 010"), 10);
  EXPECT_EQ(num_selected("--first 7"), 7);
  EXPECT_EQ(shell(select + "--count 3 --seed 010").out, shell(select + "--count 3 --seed 10").out);
  for (const char* option :
       {"--first -5", "--first 0x5", "--first 99999999999999999999", "--count -1 --seed 1"})
    expect_refused(select + option, 2, "expected a whole number from 0 to 18446744073709551615");
  expect_refused("ropd data prepare --in in.jsonl --out out.jsonl --max-prompt-tokens -1", 2,
                 "Value -1 not in range");
  expect_refused("ropd data prepare --in in.jsonl --out out.jsonl --max-prompt-tokens 4294967297", 2,
                 "Value 4294967297 not in range");
  expect_refused("ropd compare a b --seed -5", 2, "is -5, expected a whole number");
  expect_refused("ropd branch . 99999999999999999999 in.jsonl", 2, "99999999999999999999");
  expect_refused("ropd watch . --port 65536", 2, "Value 65536 not in range");
  expect_refused("ropd --threads 0x10 data stats --in in.jsonl", 2, "is 0x10, expected a whole number");
}

TEST_F(Manners, MemoryOfNoMachineIsRefused) {
  write("run.yaml", "");
  expect_refused("ropd plan run.yaml --memory-gb 1e30", 2,
                 "is 1e30, expected a number above 0 and up to 1e6");
  expect_refused("ropd plan run.yaml --memory-gb nan", 2, "is nan, expected");
  expect_refused("ropd score --model . --rollouts run.yaml --out s --teacher-memory-gb 1e30", 2,
                 "is 1e30, expected a number from 0 to 1e6");
  expect_refused("ropd eval --model m --suite three --out e --memory-gb nan", 2, "is nan, expected");
  expect_refused("ropd doctor --rank-timeout nan", 2, "is nan, expected a number from 1 to 86400");
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

// Commands of bash that start the program in `line` with a pipe as its standard input and do `then` when it has
// mapped the model: from then on it only waits for its prompts. $pid is the program; descriptor 3 writes to it.
std::string while_it_waits(const std::string& line, const std::string& then) {
  return "mkfifo in; " ROPD_PROGRAM " " + line +
         " < in & pid=$!; exec 3> in\n"
         "for i in {1..12000}; do grep -q model.safetensors /proc/$pid/maps && break; sleep 0.01; done\n"
         "( exec 3>&-; sleep 600; kill -9 $pid ) & guard=$!\n" +
         then + "\nwait $pid; code=$?; pkill -P $guard; kill $guard; exit $code";
}

TEST_F(MannersOfModels, WaitingForStandardInputEndsWithARequestToStop) {
  const Outcome outcome =
      shell(while_it_waits("generate --model model --prompts - --out out.jsonl", "kill -TERM $pid"));
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("warning: /dev/stdin: stopped"));
  EXPECT_FALSE(std::filesystem::exists(at("out.jsonl")));
}

TEST_F(MannersOfModels, AModelCutShortWhileItIsReadIsNamed) {
  const Outcome outcome = shell(
      while_it_waits("generate --quiet --model model --prompts - --out out.jsonl",
                     "truncate -s 0 model/model.safetensors; echo '{\"prompt_ids\": [1]}' >&3; exec 3>&-"));
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("ropd: model/model.safetensors: cannot be read any more"));
}

TEST_F(MannersOfModels, MoreResponsesThanMemoryHoldsAreRefusedAtOnce) {
  const Outcome outcome = shell(
      "for i in {1..20000}; do echo '{\"prompt_ids\": [1]}'; done > many.jsonl\n"
      "ropd generate --quiet --model model --prompts many.jsonl --n 1000000 --out out.jsonl");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("ropd: --n 1000000 for 20000 prompts: "), HasSubstr("ask for fewer")));
  EXPECT_FALSE(std::filesystem::exists(at("out.jsonl")));
}

// A whole model with its tokenizer, as a checkpoint and as the newest checkpoint of a run.
TEST_F(Manners, ACheckpointOrARunIsTakenForItsModel) {
  std::filesystem::create_directory(at("run"));
  write("run/config.yaml", "student: a\n");
  write("run/environment.json", "{}\n");
  const Path student = ROPD_SOURCE_DIR "/lab/models/student";
  const Path checkpoint =
      io::CheckpointStore(folder_ / "run" / "checkpoints").save(4, {}, [&](const Path& folder) {
        std::filesystem::copy(student, folder / "model", std::filesystem::copy_options::recursive);
      });
  write("prompts.jsonl",
        "{\"id\": \"a\", \"problem\": \"2eacadd?\", \"text\": \"2ea\", \"answer\": \"6\"}\n");
  write("suite.yaml", "name: one\nprompt_suffix: \"\"\nbenchmarks:\n  - {name: a, file: prompts.jsonl}\n");
  // All that five commands make of a model.
  const auto made_with = [&](const std::string& model, const std::string& out) {
    std::filesystem::create_directory(at(out));
    write(out + "/d.yaml", "teacher: " + model + "\noutput: " + out +
                               "/diagnosis\nstudents: [{name: a, model: " + model +
                               "}]\nsources: [{name: a, rollouts: " + out + "/r.jsonl}]\npositions: 4\n");
    const Outcome outcome = shell(
        "set -e\n"
        "ropd generate --quiet --max-tokens 8 --model " +
        model + " --prompts prompts.jsonl --out " + out +
        "/r.jsonl\n"
        "ropd score --quiet --model " +
        model + " --rollouts " + out + "/r.jsonl --out " + out +
        "/s.jsonl\n"
        "ropd tokenize --quiet --model " +
        model + " --in prompts.jsonl --out " + out +
        "/t.jsonl\n"
        "ropd eval --quiet --max-tokens 8 --model " +
        model + " --suite suite.yaml --out " + out +
        "/eval\n"
        "ropd diagnose --quiet --config " +
        out + "/d.yaml");
    EXPECT_EQ(outcome.exit_code, 0) << model << outcome.err;
    std::string made;
    for (const char* name : {"/r.jsonl", "/s.jsonl", "/t.jsonl", "/eval/responses.jsonl"})
      made += read_file(at(out + name));
    const Json diagnosis = parse_json(read_file(at(out + "/diagnosis/diagnosis.json")), "diagnosis");
    return made + diagnosis["kl"].dump();
  };
  const std::string expected = made_with(student.string(), "of_model");
  EXPECT_EQ(made_with(checkpoint.string(), "of_checkpoint"), expected);
  EXPECT_EQ(made_with("run", "of_run"), expected);
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

TEST_F(Manners, HelpOfEveryCommandFitsEightyColumns) {
  std::vector<std::string> commands = {""};  // grows while it is gone through
  for (size_t i = 0; i < commands.size(); ++i) {
    const std::string command = commands[i];
    std::istringstream help(shell("ropd" + command + " --help").out);
    bool lists_commands = false;
    for (std::string line; std::getline(help, line);) {
      EXPECT_LE(columns_of(line), 80u) << "ropd" << command << " --help: " << line;
      if (line == "Subcommands:" || line.empty() || line[0] != ' ') lists_commands = line == "Subcommands:";
      if (lists_commands && line.starts_with("  ") && line[2] != ' ')
        commands.push_back(command + " " + line.substr(2, line.find(' ', 2) - 2));
    }
  }
  EXPECT_GT(commands.size(), 27u) << "those of the program and of data";
}

TEST_F(Manners, VerifyShowsOnATerminalWhatItHasRead) {
  std::filesystem::create_directory(at("checkpoint"));
  constexpr uint64_t kBytes = 1'000'000'000;  // a hole: nothing is written, all of it is hashed
  write("checkpoint/state", "");
  std::filesystem::resize_file(at("checkpoint/state"), kBytes);
  Json manifest = {{"step", 1}, {"files", {{{"path", "state"}, {"bytes", kBytes}, {"sha256", "another"}}}}};
  manifest["sha256"] = sha256(manifest.dump());
  write("checkpoint/MANIFEST.json", manifest.dump());
  const Outcome shown = shell("script -qec '" ROPD_PROGRAM " verify checkpoint' /dev/null");
  EXPECT_THAT(shown.out, AllOf(HasSubstr("verify: MB read"), HasSubstr("SHA-256 differs"))) << shown.err;
  EXPECT_THAT(shell("ropd verify checkpoint").err, Not(HasSubstr("MB read"))) << "no terminal";
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

TEST_F(Manners, AnEvaluationNoticesThatItsModelIsOverwritten) {
  std::filesystem::copy(ROPD_SOURCE_DIR "/lab/models/student", at("model"));
  write("questions.jsonl", "{\"id\": \"a\", \"problem\": \"2eacadd?\", \"answer\": \"6\"}\n");
  write("suite.yaml",
        "name: one\nprompt_suffix: \"\"\nbenchmarks:\n  - {name: first, file: questions.jsonl, samples: "
        "400}\n");
  const Path weights = at("model/model.safetensors");
  const std::string before = read_file(weights);
  std::filesystem::create_directory(at("out"));
  const std::string line = "cd " + folder_.path().string() + " && exec " + ROPD_PROGRAM +
                           " eval --model model --suite suite.yaml --max-tokens 32 --budgets 32 --quiet "
                           "--threads 1 --out out/eval";
  const auto end = torture::run_traced({.command = {"/bin/sh", "-c", line},
                                        .folder = at("out"),
                                        .fault = {},
                                        .before_call =
                                            [&](uint64_t index) {
                                              std::string other = before;
                                              other[other.size() - 3] ^= 1;
                                              if (index == 40) std::ofstream(weights) << other;
                                            },
                                        .on_change = {}});
  EXPECT_EQ(end.exit_code, 1) << end.err;
  EXPECT_THAT(end.err, HasSubstr("model.safetensors: was written to while this command used it"));
  EXPECT_FALSE(std::filesystem::exists(at("out/eval/summary.json")));
  std::ofstream(weights) << before;
  EXPECT_EQ(shell(line.substr(line.find("exec ") + 5)).exit_code, 0) << "put back, it goes on";
}

}  // namespace
}  // namespace ropd
