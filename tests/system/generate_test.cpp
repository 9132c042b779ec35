// ropd generate as a user meets it: responses from ids and from text, resume after a kill, one line for every
// bad input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "base/file.h"
#include "io/rollout_file.h"
#include "support/model_files.h"
#include "support/test_data.h"
#include "system/shell.h"
#include "torture/traced_program.h"

namespace ropd {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using test::Outcome;

class Generate : public testing::Test {
 protected:
  Generate() {
    test::write_tiny_model(directory_ / "model", test::tiny_config("Qwen3ForCausalLM"));
    write("prompts.jsonl",
          "{\"query_id\": \"a\", \"prompt_ids\": [1, 3, 5], \"answer\": \"12\"}\n"
          "{\"id\": 7, \"prompt_ids\": [4]}\n{\"prompt_ids\": [9, 9, 9, 9, 9, 9, 9]}\n");
  }
  void write(const std::string& name, const std::string& content) const {
    write_file_atomically(directory_ / name, content);
  }
  std::string at(const std::string& name) const { return (directory_ / name).string(); }
  static Outcome shell(const std::string& command) { return test::run_shell(command); }
  std::string command(const std::string& more, const std::string& prompts = "prompts.jsonl",
                      const std::string& out = "out.jsonl") const {
    return std::string(ROPD_PROGRAM) + " generate --model " + at("model") + " --prompts " + at(prompts) +
           " --out " + at(out) + " " + more;
  }
  // The command with its output in killed/, disturbed at one of the calls that change files there.
  torture::ProgramEnd traced(const std::string& more, const torture::Fault& fault) const {
    const std::string line = "exec " + command(more, "prompts.jsonl", "killed/out.jsonl");
    return torture::run_traced({.command = {"/bin/sh", "-c", line},
                                .folder = directory_ / "killed",
                                .fault = fault,
                                .before_call = {},
                                .on_change = {}});
  }
  // The command fails with this exit code and one line that holds `text`; no response file appears.
  void expect_refused(const std::string& more, int exit_code, const std::string& text,
                      const std::string& prompts = "prompts.jsonl") const {
    const Outcome outcome = shell(command("--quiet " + more, prompts));
    EXPECT_EQ(outcome.exit_code, exit_code) << more << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(text)) << more;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(at("out.jsonl"))) << more;
  }
  void expect_prompt_refused(const std::string& line, const std::string& text) const {
    write("bad.jsonl", "{\"prompt_ids\": [1]}\n" + line + "\n");
    expect_refused("", 1, text, "bad.jsonl");
  }

  const test::TemporaryDirectory directory_;
};

TEST_F(Generate, WritesRolloutsFromIdsWithoutATokenizer) {
  const Outcome outcome = shell(command("--n 3 --max-tokens 20 --precision f32 --logprobs --seed 4"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto rollouts = io::read_rollouts(at("out.jsonl"), {.vocab_size = 32});
  ASSERT_EQ(rollouts.size(), 9u);
  EXPECT_EQ(rollouts[0].query_id, "a");
  EXPECT_EQ(rollouts[0].answer, "12");
  EXPECT_EQ(rollouts[2].sample, 2u);
  EXPECT_EQ(rollouts[3].query_id, "7");
  EXPECT_EQ(rollouts[8].query_id, "2") << "the number of its line";
  EXPECT_EQ(rollouts[8].prompt_ids, std::vector<Token>(7, 9));
  for (const Rollout& rollout : rollouts) {
    EXPECT_EQ(rollout.sampled_logprobs.size(), rollout.response_ids.size());
    EXPECT_EQ(rollout.seed, 4u);
    EXPECT_EQ(rollout.finish == Finish::eos, rollout.response_ids.back() == 2);
  }
  EXPECT_NE(rollouts[0].response_ids, rollouts[1].response_ids);
}

TEST_F(Generate, WritesTheSameRowsToStandardOutput) {
  const std::string more = "--n 3 --max-tokens 20 --json";
  ASSERT_EQ(shell(command(more)).exit_code, 0);
  std::string to_stream = command(more);
  to_stream.replace(to_stream.find("--out " + at("out.jsonl")), 6 + at("out.jsonl").size(), "--out -");
  const Outcome outcome = shell("cd " + directory_.path().string() + " && " + to_stream);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, read_file(at("out.jsonl"))) << "rows and nothing else";
  EXPECT_FALSE(std::filesystem::exists(at("-")));
  EXPECT_EQ(shell(to_stream + " --stream").exit_code, 2);
  std::string many = to_stream + " --quiet";
  many.replace(many.find("--n 3"), 5, "--n 2000");
  const Outcome left = shell(many + " | head -n 1");
  EXPECT_EQ(std::count(left.out.begin(), left.out.end(), '\n'), 1);
  EXPECT_THAT(left.err, HasSubstr("/dev/stdout: cannot write: Broken pipe"));
}

TEST_F(Generate, AnotherPurposeIsOtherResponses) {
  ASSERT_EQ(shell(command("--max-tokens 20", "prompts.jsonl", "one.jsonl")).exit_code, 0);
  ASSERT_EQ(shell(command("--max-tokens 20 --purpose prefixes", "prompts.jsonl", "two.jsonl")).exit_code, 0);
  const auto one = io::read_rollouts(at("one.jsonl")), two = io::read_rollouts(at("two.jsonl"));
  EXPECT_NE(one[0].response_ids, two[0].response_ids);
  EXPECT_EQ(io::read_bank_meta(at("one.jsonl"))->stream, "generate");
  EXPECT_EQ(io::read_bank_meta(at("two.jsonl"))->stream, "generate prefixes");
}

TEST_F(Generate, RunsEveryArchitectureInBothPrecisions) {
  for (const char* architecture : {"Qwen2ForCausalLM", "Qwen3MoeForCausalLM", "Qwen3ForCausalLM"}) {
    std::filesystem::remove_all(at("model"));
    test::write_tiny_model(at("model"), test::tiny_config(architecture), DType::bf16);
    for (const std::string precision : {"f32", "bf16", "bf16_tiles"}) {
      const std::string out = std::string(architecture) + precision + ".jsonl";
      const Outcome outcome = shell(command("--n 2 --precision " + precision, "prompts.jsonl", out));
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      EXPECT_EQ(io::read_rollouts(at(out)).size(), 6u);
    }
  }
}

TEST_F(Generate, GivesTheSameBytesForAnyNumberOfThreads) {
  ASSERT_EQ(shell(command("--n 4 --threads 1", "prompts.jsonl", "one.jsonl")).exit_code, 0);
  ASSERT_EQ(shell(command("--n 4 --threads 2", "prompts.jsonl", "two.jsonl")).exit_code, 0);
  EXPECT_EQ(read_file(at("one.jsonl")), read_file(at("two.jsonl")));
}

TEST_F(Generate, GoesOnAfterAKillWithTheSameBytes) {
  const std::string more = "--n 400 --max-tokens 50 --top-p 0.9 --threads 1";
  ASSERT_EQ(shell(command(more, "prompts.jsonl", "whole.jsonl")).exit_code, 0);
  // Whatever a kill leaves behind, the next round goes on: each comes so many file-changing calls later.
  std::filesystem::create_directory(at("killed"));
  for (const uint64_t call : {5, 100, 700}) EXPECT_TRUE(traced(more, {.at = call}).was_killed);
  ASSERT_EQ(shell(command(more, "prompts.jsonl", "killed/out.jsonl")).exit_code, 0);
  EXPECT_EQ(read_file(at("killed/out.jsonl")), read_file(at("whole.jsonl")));
  EXPECT_FALSE(std::filesystem::exists(at("killed/out.partial.jsonl")));
}

TEST_F(Generate, AnInterruptSaysHowToGoOn) {
  // When the first responses are written, however long that takes.
  std::filesystem::create_directory(at("killed"));
  const auto outcome = traced("--n 200000 --max-tokens 50",
                              {.at = 20, .kind = torture::Fault::Kind::signal, .signal = SIGTERM});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("the same command goes on from here"));
}

TEST_F(Generate, ClosedStandardDescriptorsPutNoMessagesIntoTheResult) {
  for (const std::string closed : {">&-", "2>&-", "<&- >&- 2>&-"}) {
    std::filesystem::remove(at("out.jsonl"));
    EXPECT_EQ(shell("( " + command("--n 3") + " " + closed + " )").exit_code, 0) << closed;
    EXPECT_EQ(io::read_rollouts(at("out.jsonl")).size(), 9u) << closed;
  }
}

TEST_F(Generate, AFailedWriteLeavesWhatWasWrittenValid) {
  // The limit on file size stands for a full disk: the file stops growing in the middle of a row.
  const Outcome outcome =
      shell("( trap \"\" XFSZ; ulimit -f 16; " + command("--quiet --n 300 --max-tokens 50") + " )");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("out.partial.jsonl"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_EQ(shell(command("--quiet --n 300 --max-tokens 50")).exit_code, 0);
  EXPECT_EQ(io::read_rollouts(at("out.jsonl")).size(), 900u);
}

TEST_F(Generate, SaysWhenTheOutputWasMadeInAnotherWay) {
  ASSERT_EQ(shell(command("--seed 1")).exit_code, 0);
  const std::string before = read_file(at("out.jsonl"));
  const Outcome outcome = shell(command("--quiet --seed 2"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("made in another way: seed is 1, expected 2"));
  EXPECT_EQ(read_file(at("out.jsonl")), before);
  EXPECT_EQ(shell(command("--seed 2 --overwrite")).exit_code, 0);
  EXPECT_NE(read_file(at("out.jsonl")), before);
}

TEST_F(Generate, GreedyGivesOneAnswer) {
  ASSERT_EQ(shell(command("--greedy --n 2 --precision f32")).exit_code, 0);
  const auto rollouts = io::read_rollouts(at("out.jsonl"));
  EXPECT_EQ(rollouts[0].response_ids, rollouts[1].response_ids);
}

TEST_F(Generate, PrintsASummaryAsJson) {
  const Outcome outcome = shell(command("--json --n 2"));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\"responses\":6"), HasSubstr("\"tokens_per_second\":")));
}

TEST_F(Generate, RendersMessagesAndDecodesResponses) {
  ROPD_NEEDS_DATA();
  std::filesystem::remove_all(at("model"));
  test::write_tiny_model(at("model"), test::tiny_config("Qwen3ForCausalLM", {{"vocab_size", "151936"},
                                                                             {"eos_token_id", "151645"}}));
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(test::data_directory() / "tokenizers/qwen3" / name,
                               directory_ / "model" / name);
  write("chat.jsonl",
        "{\"prompt\": \"Hello\"}\n{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}\n"
        "{\"problem\": \"Hello\"}\n{\"question\": \"Hello\"}\n");
  const Outcome outcome = shell(command("--stream --max-tokens 12 --no-thinking", "chat.jsonl"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto rollouts = io::read_rollouts(at("out.jsonl"));
  ASSERT_EQ(rollouts.size(), 4u);
  for (const Rollout& rollout : rollouts) EXPECT_EQ(rollout.prompt_ids, rollouts[0].prompt_ids);
  EXPECT_EQ(rollouts[0].prompt_ids.front(), 151644) << "<|im_start|>";
  EXPECT_TRUE(rollouts[0].text && !rollouts[0].text->empty());
  EXPECT_FALSE(outcome.out.empty()) << "one response was shown";
  for (const char letter : outcome.out)
    EXPECT_TRUE(letter == '\n' || letter == '\t' || static_cast<uint8_t>(letter) >= 32);
}

TEST_F(Generate, RefusesWrongOptions) {
  expect_refused("--temperature 0", 2, "--temperature");
  expect_refused("--temperature -1", 2, "expected a number between 1e-6 and 1e6");
  expect_refused("--temperature nan", 2, "--temperature");
  expect_refused("--top-p 0", 2, "expected a number in (0, 1]");
  expect_refused("--top-p 1.5", 2, "expected a number in (0, 1]");
  expect_refused("--top-k -3", 2, "--top-k");
  expect_refused("--n 0", 2, "--n");
  expect_refused("--max-tokens 0", 2, "--max-tokens");
  expect_refused("--precision f16", 2, "--precision");
  expect_refused("--memory-gb none", 2,
                 "--memory-gb: is none, expected auto or a number above 0 and below 1e6 (");
  expect_refused("--memory-gb 1e30", 2,
                 "--memory-gb: is 1e30, expected auto or a number above 0 and below 1e6 (");
}

TEST_F(Generate, RefusesBadPrompts) {
  expect_prompt_refused("{\"prompt_ids\": []}", "bad.jsonl:2: the prompt is empty");
  expect_prompt_refused("{\"prompt_ids\": [1, 32]}", "holds id 32, outside the vocabulary of 32");
  expect_prompt_refused("{\"prompt_ids\": [1, -2]}", "bad.jsonl:2: prompt_ids[1] is -2");
  expect_prompt_refused("{\"prompt_ids\": 5}", "prompt_ids is not a list");
  expect_prompt_refused("{\"query\": \"x\"}", "has no prompt, expected one of messages, prompt, prompt_ids");
  expect_prompt_refused("{\"prompt\": \"x\", \"prompt_ids\": [1]}",
                        "has prompt, prompt_ids, expected one of");
  expect_prompt_refused("{\"prompt\": \"x\"}", "has no tokenizer.json");
  expect_prompt_refused("{\"id\": \"0\", \"prompt_ids\": [1]}", "query_id \"0\" is also in");
  expect_prompt_refused("{\"prompt_ids\": [1], \"answer\": []}", "answer is not a text");
  expect_prompt_refused("not json", "bad.jsonl:2");
  std::string ids = "1";
  for (int i = 0; i < 63; ++i) ids += ",1";
  expect_prompt_refused("{\"prompt_ids\": [" + ids + "]}", "the prompt has 64 tokens, the model's context");
  write("empty.jsonl", "");
  expect_refused("", 1, "empty.jsonl: holds no prompts", "empty.jsonl");
  expect_refused("", 1, "absent.jsonl", "absent.jsonl");
}

TEST_F(Generate, RefusesWhatTheMachineCannotDo) {
  expect_refused("--memory-gb 0.000001", 1, "one response of up to");
  const Outcome outcome = shell(command("--quiet", "prompts.jsonl", "absent/out.jsonl"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("absent/out"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST_F(Generate, ADamagedBankIsNeitherFinishedNorScored) {
  ASSERT_EQ(shell(command("--quiet")).exit_code, 0);
  std::string text = read_file(at("out.jsonl"));
  const size_t digit = text.find("\"response_ids\":[") + 16;
  text[digit] = text[digit] == '1' ? '2' : '1';
  write("out.jsonl", text);
  for (const std::string& again :
       {command("--quiet"), std::string(ROPD_PROGRAM) + " score --quiet --model " + at("model") +
                                " --rollouts " + at("out.jsonl") + " --out " + at("scores.jsonl")}) {
    const Outcome outcome = shell(again);
    EXPECT_EQ(outcome.exit_code, 1) << again;
    EXPECT_THAT(outcome.err, HasSubstr("out.jsonl: its content is not what its description says"));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_EQ(read_file(at("out.jsonl")), text);
  EXPECT_FALSE(std::filesystem::exists(at("scores.jsonl")));
}

// The files beside --out that a bank consists of too.
TEST_F(Generate, NeverWritesOntoItsInputs) {
  const std::string prompts = read_file(at("prompts.jsonl"));
  for (const std::string name : {"x.partial.jsonl", "x.meta.json", "x.jsonl"}) {
    write(name, prompts);
    for (const std::string more : {"--quiet", "--quiet --overwrite"}) {
      const Outcome outcome = shell(command(more, name, "x.jsonl"));
      EXPECT_EQ(outcome.exit_code, 1) << name << more;
      EXPECT_THAT(outcome.err, HasSubstr(name + ": is an input of this command")) << more;
      EXPECT_EQ(read_file(at(name)), prompts) << more;
    }
    std::filesystem::remove(at(name));
  }
  const std::string weights = read_file(at("model/model.safetensors"));
  EXPECT_EQ(shell(command("--overwrite", "prompts.jsonl", "model/model.safetensors")).exit_code, 1);
  EXPECT_EQ(read_file(at("model/model.safetensors")), weights);
}

TEST_F(Generate, PathsNeedNotBeUtf8) {
  std::filesystem::rename(at("model"), at("model-\xff"));
  std::string line = command("--quiet --json");
  line.replace(line.find(at("model")), at("model").size(), "'" + at("model-\xff") + "'");
  for (int call = 0; call < 2; ++call) ASSERT_EQ(shell(line).exit_code, 0);
  EXPECT_THAT(io::read_bank_meta(at("out.jsonl"))->model, testing::EndsWith("model-\xef\xbf\xbd"));
}

TEST_F(Generate, AndScoreNoticeAModelThatIsOverwritten) {
  const Path weights = at("model/model.safetensors");
  const std::string before = read_file(weights), more = "--n 400 --max-tokens 50 --threads 1";
  std::filesystem::create_directory(at("killed"));
  // In its place, at the n-th call that changes a file of the result.
  const auto overwritten_at = [&](uint64_t n, const std::string& line) {
    std::string other = before;
    other[other.size() - 3] = static_cast<char>(other[other.size() - 3] ^ 1);
    const auto end = torture::run_traced({.command = {"/bin/sh", "-c", "exec " + line},
                                          .folder = directory_ / "killed",
                                          .fault = {},
                                          .before_call =
                                              [&](uint64_t index) {
                                                if (index == n) std::ofstream(weights) << other;
                                              },
                                          .on_change = {}});
    EXPECT_EQ(end.exit_code, 1) << end.err;
    EXPECT_THAT(end.err, HasSubstr(weights.string() + ": was written to while this command used it"));
    std::ofstream(weights) << before;
  };
  ASSERT_EQ(shell(command(more, "prompts.jsonl", "whole.jsonl")).exit_code, 0);
  overwritten_at(100, command("--quiet " + more, "prompts.jsonl", "killed/out.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(at("killed/out.jsonl")));
  ASSERT_EQ(shell(command(more, "prompts.jsonl", "killed/out.jsonl")).exit_code, 0);
  EXPECT_EQ(read_file(at("killed/out.jsonl")), read_file(at("whole.jsonl"))) << "put back, it goes on";
  const std::string score = std::string(ROPD_PROGRAM) + " score --quiet --batch-tokens 50 --model " +
                            at("model") + " --rollouts " + at("whole.jsonl") + " --out ";
  overwritten_at(20, score + at("killed/scores.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(at("killed/scores.jsonl")));
  ASSERT_EQ(shell(score + at("killed/scores.jsonl")).exit_code, 0);
  ASSERT_EQ(shell(score + at("whole-scores.jsonl")).exit_code, 0);
  EXPECT_EQ(read_file(at("killed/scores.jsonl")), read_file(at("whole-scores.jsonl")));
}

// What `ropd verify` says holds names of files.
TEST_F(Generate, VerifyShowsNamesWithoutTheirControlCharacters) {
  ASSERT_EQ(shell(command("--quiet")).exit_code, 0);
  std::filesystem::rename(at("out.jsonl"), at("o\x1b[2J\nut.jsonl"));
  const Outcome outcome =
      test::run_shell(std::string(ROPD_PROGRAM) + " verify '" + at("o\x1b[2J\nut.jsonl") + "'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "whole      o␛[2J␊ut.jsonl\n");
}

}  // namespace
}  // namespace ropd
