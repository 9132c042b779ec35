// The program as a user meets it: exit codes, one-line errors, --version, --help, inspect, completion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "io/checkpoint.h"
#include "io/rollout_file.h"
#include "io/run_directory.h"
#include "support/model_files.h"
#include "support/test_data.h"
#include "system/shell.h"

namespace ropd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using test::Outcome;
using test::run_ropd;
using test::run_shell;

TEST(Program, PrintsItsVersion) {
  const auto outcome = run_ropd("--version");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("ropd [0-9]+\\.[0-9]+\\.[0-9]+[^\n]*\n"));
}

TEST(Program, HelpHasExamples) {
  for (const char* arguments : {"--help", "inspect --help", "completion --help"}) {
    const auto outcome = run_ropd(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("Example")) << arguments;
  }
}

TEST(Program, WrongUsageGivesTwoAndOneLine) {
  for (const char* arguments : {"", "nonsense", "inspect", "inspect --nonsense x", "--threads 0 inspect x",
                                "completion tcsh", "bench --work iteration --shape qwen3-0.6b"}) {
    const auto outcome = run_ropd(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_THAT(outcome.err, StartsWith("ropd")) << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST(Program, BenchFitsATerminal) {
  const auto outcome = run_ropd("bench --shape tiny --work score --precision bf16");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nscore, top 16, bf16 ")) << "a row of the table";
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(Program, NamesWhatItDoesNotKnow) {
  const std::pair<const char*, const char*> cases[] = {
      {"trian x", "ropd: unknown command 'trian', did you mean 'train'?"},
      {"--foo", "ropd: unknown option '--foo' (see ropd --help)"},
      {"generate --modl x", "ropd generate: unknown option '--modl', did you mean '--model'?"},
      {"score --top_k=3", "ropd score: unknown option '--top_k', did you mean '--top-k'?"},
      {"data prepare --fooo", "ropd data prepare: unknown option '--fooo'"},
      // 3 would be the file
      {"train --steps 3", "ropd train: unknown option '--steps'; settings are written key=value"},
  };
  for (const auto& [arguments, expected] : cases) {
    const auto outcome = run_ropd(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_THAT(outcome.err, StartsWith(expected));
  }
}

TEST(Program, FailureGivesOneAndOneLine) {
  const auto outcome = run_ropd("inspect /nowhere");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "ropd: /nowhere: does not exist\n");
}

TEST(Program, GradesLineByLineAndKeepsEveryField) {
  const test::TemporaryDirectory directory;
  const std::string in = (directory / "in.jsonl").string(), out = (directory / "out.jsonl").string();
  const std::string good = R"({"id": 7, "response": "so \\boxed{\\frac{1}{2}}", "answer": "0.5"})"
                           "\n"
                           R"({"response": "no box", "answer": 3})"
                           "\n"
                           R"({"response": "\\boxed{4}", "answer": [3, "4"]})"
                           "\n";
  write_file_atomically(in, good);
  const auto outcome = run_ropd("grade --in " + in + " --out " + out);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("3 lines, 2 correct (66.67%), 2 with an answer"));
  EXPECT_EQ(read_file(out),
            R"({"answer":"0.5","answer_found":true,"correct":true,"extracted":"\\frac{1}{2}","id":7,)"
            R"("response":"so \\boxed{\\frac{1}{2}}"})"
            "\n"
            R"({"answer":3,"answer_found":false,"correct":false,"extracted":"","response":"no box"})"
            "\n"
            R"({"answer":[3,"4"],"answer_found":true,"correct":true,"extracted":"4","response":"\\boxed{4}"})"
            "\n");

  write_file_atomically(in, good + R"({"content": "\\boxed{4}", "answer": 4})" + "\n");
  std::filesystem::remove(out);
  const auto failed = run_ropd("grade --in " + in + " --out " + out);
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.err, HasSubstr("in.jsonl:4: no text under \"response\""));
  EXPECT_FALSE(std::filesystem::exists(out)) << "half a result";
}

TEST(Program, FailureToWriteItsResultIsReported) {
  const test::TemporaryDirectory directory;
  test::write_tiny_model(directory / "m", test::tiny_config("Qwen3ForCausalLM"));
  const auto outcome =
      run_shell(std::string(ROPD_PROGRAM) + " inspect " + (directory / "m").string() + " > /dev/full");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("stdout: cannot write"));
}

TEST(Program, AnExistingOutputNeedsOverwriteAndAnInputIsNeverWrittenOnto) {
  const test::TemporaryDirectory directory;
  const std::string in = (directory / "in.jsonl").string(), out = (directory / "out.jsonl").string();
  const std::string rows = "{\"response\": \"\\\\boxed{4}\", \"answer\": 4}\n";
  write_file_atomically(in, rows);
  write_file_atomically(out, "mine\n");
  const auto refused = run_ropd("grade --in " + in + " --out " + out);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("out.jsonl: exists already; --overwrite replaces it"));
  EXPECT_EQ(read_file(out), "mine\n");
  EXPECT_EQ(run_ropd("grade --overwrite --in " + in + " --out " + out).exit_code, 0);
  EXPECT_NE(read_file(out), "mine\n");
  std::filesystem::create_symlink("in.jsonl", directory / "link.jsonl");
  for (const std::string& name : {std::string("in.jsonl"), std::string("link.jsonl"),
                                  "../" + directory.path().filename().string() + "/in.jsonl"}) {
    const auto outcome = run_ropd("grade --overwrite --in " + in + " --out " + (directory / name).string());
    EXPECT_EQ(outcome.exit_code, 1) << name;
    EXPECT_THAT(outcome.err, HasSubstr("is an input of this command")) << name;
    EXPECT_EQ(read_file(in), rows);
  }
  test::write_tiny_model(directory / "m", test::tiny_config("Qwen3ForCausalLM"));
  io::write_rollouts(directory / "bank.jsonl",
                     std::vector<Rollout>{{.query_id = "q", .prompt_ids = {1}, .response_ids = {3, 2}}});
  const std::string bank = (directory / "bank.jsonl").string(), before = read_file(bank);
  const std::string score = "score --model " + (directory / "m").string() + " --rollouts " + bank + " --out ";
  EXPECT_THAT(run_ropd(score + bank).err, HasSubstr("is an input of this command"));
  EXPECT_EQ(read_file(bank), before);
  EXPECT_EQ(run_ropd(score + out + " --overwrite").exit_code, 0);
  EXPECT_EQ(run_ropd(score + "/dev/null").exit_code, 0);
}

TEST(Program, ScoresOfAStreamedTeacherAreTheSameFile) {
  const test::TemporaryDirectory directory;
  const auto at = [&](const char* name) { return (directory / name).string(); };
  test::write_tiny_model(directory / "m", test::tiny_config("Qwen3ForCausalLM"));
  test::write_tiny_model(directory / "t", test::tiny_config("Qwen3MoeForCausalLM"), DType::bf16, 2);
  io::write_rollouts(directory / "bank.jsonl",
                     std::vector<Rollout>{{.query_id = "q", .prompt_ids = {1}, .response_ids = {3, 2}},
                                          {.query_id = "r", .prompt_ids = {1, 4}, .response_ids = {5}}});
  const std::string score = "score --model " + at("m") + " --teacher " + at("t") + " --top-k 4 --rollouts " +
                            at("bank.jsonl") + " --out ";
  ASSERT_EQ(run_ropd(score + at("whole.jsonl")).exit_code, 0);
  const auto streamed = run_ropd(score + at("layers.jsonl") + " --teacher-memory-gb 0");
  ASSERT_EQ(streamed.exit_code, 0) << streamed.err;
  EXPECT_THAT(streamed.err, HasSubstr("teacher: streamed, 1 pass through its layers, "));
  EXPECT_EQ(read_file(directory / "layers.jsonl"), read_file(directory / "whole.jsonl"));
}

TEST(Program, NumbersOutOfRangeAreRefusedWithTheRange) {
  const test::TemporaryDirectory directory;
  test::write_tiny_model(directory / "m", test::tiny_config("Qwen3ForCausalLM"));
  const std::string model = (directory / "m").string();
  write_file_atomically(directory / "q.jsonl", "{\"id\": \"a\", \"problem\": \"1?\", \"answer\": \"1\"}\n");
  const std::pair<std::string, std::string> cases[] = {
      {"eval --suite three --out x --seed -5 --model " + model, "is -5, expected a whole number from 0"},
      {"data order --out x --seed -5 --in " + (directory / "q.jsonl").string(),
       "is -5, expected a whole number"},
      {"generate --prompts p --out x --temperature 1e30 --model " + model,
       "is 1e30, expected a number between"},
      {"score --rollouts " + (directory / "q.jsonl").string() + " --out x --temperature 1e-40 --model " +
           model,
       "is 1e-40, expected a number between 1e-6 and 1e6"}};
  for (const auto& [arguments, expected] : cases) {
    const auto outcome = run_ropd(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(expected)) << arguments;
  }
}

TEST(Verify, TellsWhatIsWholeAndWhatIsDamaged) {
  const test::TemporaryDirectory directory;
  test::write_tiny_model(directory / "m", test::tiny_config("Qwen3ForCausalLM"));
  const auto model = run_ropd("verify " + (directory / "m").string());
  EXPECT_EQ(model.exit_code, 0) << model.err;
  EXPECT_THAT(model.out, AllOf(HasSubstr("whole      model.safetensors"), HasSubstr("the whole model")));
  const Path checkpoint = io::CheckpointStore(directory / "c").save(4, {}, [](const Path& folder) {
    test::write_tiny_model(folder / "model", test::tiny_config("Qwen3ForCausalLM"));
  });
  EXPECT_EQ(run_ropd("verify " + checkpoint.string()).exit_code, 0);
  write_file_atomically(checkpoint / "model/generation_config.json", "{}");
  EXPECT_EQ(run_ropd("verify " + checkpoint.string()).exit_code, 0) << "not of the manifest";
  std::string bytes = read_file(checkpoint / "model/model.safetensors");
  bytes[bytes.size() - 9] = static_cast<char>(bytes[bytes.size() - 9] ^ 1);
  write_file_atomically(checkpoint / "model/model.safetensors", bytes);
  for (const Path& path : {checkpoint, checkpoint / "model"}) {
    const auto outcome = run_ropd("verify " + path.string());
    EXPECT_EQ(outcome.exit_code, 1) << path;
    EXPECT_THAT(outcome.out, HasSubstr("damaged    " + (checkpoint / "model/model.safetensors").string()))
        << path;
  }
  EXPECT_THAT(run_ropd("verify /nowhere").err, HasSubstr("/nowhere: does not exist"));
}

TEST(Program, AFileAtTheLimitOfItsSizeIsAnErrorWithAName) {
  const test::TemporaryDirectory directory;
  test::write_tiny_model(directory / "m", test::tiny_config("Qwen3ForCausalLM"));
  write_file_atomically(directory / "p.jsonl", "{\"prompt_ids\": [1]}\n");
  const std::string model = (directory / "m").string();
  const auto outcome = run_shell(
      "ulimit -f 1; " + std::string(ROPD_PROGRAM) + " generate --quiet --n 2000 --model " + model +
      " --prompts " + (directory / "p.jsonl").string() + " --out " + (directory / "o.jsonl").string());
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("o.partial.jsonl: cannot write: File too large"));
}

TEST(Inspect, ShowsAModelAsJson) {
  const test::TemporaryDirectory directory;
  test::write_tiny_model(directory / "m", test::tiny_config("Qwen3MoeForCausalLM"), DType::bf16);
  const auto outcome = run_ropd("inspect --json " + (directory / "m").string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = parse_json(outcome.out, "stdout");
  EXPECT_EQ(json["kind"], "model");
  EXPECT_EQ(json["architecture"], "Qwen3MoeForCausalLM");
  const int attention = 16 * (32 + 16 + 16 + 32) + 2 * 8 + 2 * 16;
  EXPECT_EQ(json["parameters"], 2 * 32 * 16 + 16 + 2 * (attention + 4 * 16 + 4 * 3 * 12 * 16));
  EXPECT_EQ(json["active_parameters"], 2 * 32 * 16 + 16 + 2 * (attention + 4 * 16 + 2 * 3 * 12 * 16));
  EXPECT_EQ(json["tensors"]["BF16"], 2 * 21 + 3);
  EXPECT_EQ(json["eos_ids"], Json::array({2}));
}

TEST(Inspect, TellsTheTruthAboutTheSharedModels) {
  ROPD_NEEDS_DATA();
  const auto tiny = run_ropd("inspect " + (test::data_directory() / "models/qwen3_tiny").string());
  EXPECT_EQ(tiny.exit_code, 0) << tiny.err;
  EXPECT_THAT(tiny.out,
              AllOf(HasSubstr("Qwen3ForCausalLM"), HasSubstr("F32"), HasSubstr("none (no tokenizer.json)")));
  const auto stories = run_ropd("inspect --json " + (test::data_directory() / "models/stories260K").string());
  const Json json = parse_json(stories.out, "stdout");
  EXPECT_EQ(json["architecture"], "LlamaForCausalLM");
  EXPECT_EQ(json["parameters"], 260032);
  EXPECT_EQ(json["stored_bytes"], 4 * 260032);
  EXPECT_EQ(json["tensors"]["F32"], 47);
  EXPECT_EQ(json["shape"]["tied_embeddings"], true);
  EXPECT_EQ(json["memory"]["training_bytes"], 16 * 260032);
  EXPECT_EQ(json["memory"]["kv_cache_bf16_bytes_per_token"], 2 * 2 * 5 * 4 * 8);
}

TEST(Inspect, ShowsTokenizerAndTemplate) {
  ROPD_NEEDS_DATA();
  const test::TemporaryDirectory directory;
  test::write_tiny_model(directory / "m", test::tiny_config("Qwen3ForCausalLM"));
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy_file(test::data_directory() / "tokenizers/qwen3" / name, directory / "m" / name);
  }
  const Json json = parse_json(run_ropd("inspect --json " + (directory / "m").string()).out, "stdout");
  EXPECT_EQ(json["tokenizer"]["type"], "BPE");
  EXPECT_EQ(json["tokenizer"]["entries"], 151643);
  EXPECT_EQ(json["tokenizer"]["added_tokens"], 26);
  const Json config = parse_json(read_file(directory / "m/tokenizer_config.json"), "config");
  EXPECT_EQ(json["chat_template"]["sha256"], sha256(config["chat_template"].get<std::string>()));
}

TEST(Inspect, ShowsABankACheckpointAndARun) {
  const test::TemporaryDirectory directory;
  const auto inspected = [&](const Path& path) {
    const auto outcome = run_ropd("inspect --json " + path.string());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return parse_json(outcome.out, "stdout");
  };
  auto run = io::RunDirectory::create(directory / "run", "student: a\nteacher: b\n",
                                      io::describe_environment("test"));
  std::filesystem::create_directories(run.initial_bank().parent_path());
  io::write_rollouts(run.initial_bank(),
                     std::vector<Rollout>{
                         {.query_id = "q", .prompt_ids = {1}, .response_ids = {3, 2}, .finish = Finish::eos},
                         {.query_id = "q", .sample = 1, .prompt_ids = {1}, .response_ids = {4, 5, 6, 7}}});
  const Path checkpoint = io::CheckpointStore(run.checkpoints()).save(4, {}, [](const Path& folder) {
    test::write_tiny_model(folder / "model", test::tiny_config("Qwen3ForCausalLM"));
  });
  const Json bank = inspected(run.initial_bank());
  EXPECT_EQ(bank["kind"], "bank");
  EXPECT_EQ(bank["responses"], 2);
  EXPECT_EQ(bank["queries"], 1);
  EXPECT_EQ(bank["mean_response_tokens"], 3.0);
  EXPECT_EQ(bank["cut_share"], 0.5);
  const Json saved = inspected(checkpoint);
  EXPECT_EQ(saved["kind"], "checkpoint");
  EXPECT_EQ(saved["step"], 4);
  EXPECT_EQ(saved["model"]["architecture"], "Qwen3ForCausalLM");
  const Json whole = inspected(run.path());
  EXPECT_EQ(whole["kind"], "run");
  EXPECT_EQ(whole["student"], "a");
  EXPECT_EQ(whole["checkpoints_at_step"], Json::array({4}));
  EXPECT_EQ(whole["banks"], Json::array({"initial.jsonl"}));
  write_file_atomically(checkpoint / "model/config.json", "{}");
  EXPECT_EQ(run_ropd("inspect " + checkpoint.string()).exit_code, 1);  // no longer what its manifest says
}

TEST(Completion, BashScriptCompletesCommandsAndOptions) {
  const test::TemporaryDirectory directory;
  write_file_atomically(directory / "try.sh",
                        "source <(" ROPD_PROGRAM
                        " completion bash)\n"
                        "COMP_WORDS=(ropd insp); COMP_CWORD=1; _ropd; echo \"${COMPREPLY[@]}\"\n"
                        "COMP_WORDS=(ropd inspect --js); COMP_CWORD=2; _ropd; echo \"${COMPREPLY[@]}\"\n");
  EXPECT_EQ(run_shell("bash " + (directory / "try.sh").string()).out, "inspect\n--json\n");
}

TEST(Completion, EveryShellGetsEveryVisibleCommand) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto outcome = run_ropd(std::string("completion ") + shell);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("inspect"), HasSubstr("completion"), HasSubstr("quiet")))
        << shell;
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("config-reference"))) << shell;
  }
}

}  // namespace
}  // namespace ropd
