// Adapter directories as a user meets them: wherever a model is taken, and merged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ropd_source_directory.h>

#include "base/json.h"
#include "io/save_model.h"
#include "support/model_files.h"
#include "system/shell.h"

namespace ropd {
namespace {

using test::run_ropd;
using testing::HasSubstr;

class AdapterCommands : public testing::Test {
 protected:
  AdapterCommands() {
    test::write_tiny_model(directory_ / "base", test::tiny_config("Qwen3ForCausalLM"), DType::bf16);
    save("adapter", at("base"));
    write_file_atomically(directory_ / "prompts.jsonl",
                          "{\"id\": \"x\", \"prompt_ids\": [1, 3]}\n{\"id\": \"y\", \"prompt_ids\": [4]}\n");
  }
  void save(const std::string& name, const std::string& base) const {
    save_on(directory_ / "base", name, base);
  }
  // On the model in `folder`; `base` is what the adapter says of it.
  void save_on(const Path& folder, const std::string& name, const std::string& base) const {
    const io::ModelDirectory model(folder);
    const AdapterConfig config = {
        .rank = 2, .alpha = 3, .targets = {"q_proj", "down_proj"}, .ranks = {}, .alphas = {}};
    test::TensorsInMemory memory;
    for (const AdapterMatrix& m : io::adapter_matrices(model.config(), config, "test")) {
      memory.add(io::lora_a_name(m.module), DType::f32, {m.rank, m.inputs});
      memory.add(io::lora_b_name(m.module), DType::f32, {m.outputs, m.rank});
    }
    io::save_adapter_directory(directory_ / name,
                               {.adapter = config,
                                .base = base,
                                .fingerprint = io::base_fingerprint(model.tensors()),
                                .description = "",
                                .content = io::base_content(model.tensors())},
                               memory.tensors);
  }
  std::string at(const std::string& name) const { return (directory_ / name).string(); }
  // Sampled and scored by one model.
  std::string responses_of(const std::string& model, const std::string& out) const {
    const auto sampled =
        run_ropd("generate --quiet --n 3 --max-tokens 12 --precision f32 --logprobs --model " + at(model) +
                 " --prompts " + at("prompts.jsonl") + " --out " + at(out));
    EXPECT_EQ(sampled.exit_code, 0) << sampled.err;
    const auto scored = run_ropd("score --quiet --top-k 4 --model " + at(model) + " --rollouts " + at(out) +
                                 " --out " + at(out + ".scores"));
    EXPECT_EQ(scored.exit_code, 0) << scored.err;
    return read_file(directory_ / out) + read_file(directory_ / (out + ".scores"));
  }

  const test::TemporaryDirectory directory_;
};

TEST_F(AdapterCommands, AMergedDirectoryGivesTheNumbersOfItsAdapter) {
  const auto merged = run_ropd("merge " + at("adapter") + " --dtype f32 --out " + at("merged"));
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  const std::string of_adapter = responses_of("adapter", "a.jsonl");
  EXPECT_EQ(of_adapter, responses_of("merged", "m.jsonl"));
  EXPECT_NE(of_adapter, responses_of("base", "b.jsonl"));
  const auto again = run_ropd("merge " + at("adapter") + " --out " + at("merged"));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("exists already"));
  const auto model = run_ropd("merge " + at("base") + " --out " + at("other"));
  EXPECT_EQ(model.exit_code, 1);
  EXPECT_THAT(model.err, HasSubstr("is a model already"));
}

TEST_F(AdapterCommands, RefuseABaseWithAFlippedBit) {
  test::write_tiny_model(directory_ / "wide", test::tiny_config("Qwen3ForCausalLM", {{"intermediate_size", "96"}}));
  save_on(directory_ / "wide", "on-wide", at("wide"));
  test::flip_last_bit(directory_ / "wide/model.safetensors", "model.layers.1.mlp.up_proj.weight");
  EXPECT_EQ(run_ropd("inspect " + at("on-wide")).exit_code, 0) << "which reads no weights";
  for (const std::string& command :
       {"merge " + at("on-wide") + " --out " + at("merged"), "verify " + at("on-wide"),
        "generate --model " + at("on-wide") + " --prompts " + at("prompts.jsonl") + " --out " + at("x.jsonl")}) {
    const auto refused = run_ropd(command);
    EXPECT_EQ(refused.exit_code, 1) << command;
    EXPECT_THAT(refused.err, HasSubstr("the weights of its base " + at("wide"))) << command;
  }
}

TEST_F(AdapterCommands, AreInspectedVerifiedAndDiagnosed) {
  const auto inspected = run_ropd("inspect --json " + at("adapter"));
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  const Json description = parse_json(inspected.out, "inspect");
  EXPECT_EQ(description["adapter"]["rank"], 2);
  EXPECT_EQ(description["adapter"]["matrices"], 4);
  const auto verified = run_ropd("verify " + at("adapter"));
  ASSERT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("base/model.safetensors"));
  (void)responses_of("base", "b.jsonl");
  write_file_atomically(directory_ / "d.yaml", "teacher: " + at("adapter") + "\noutput: " + at("out") +
                                                   "\nstudents: [{name: a, model: " + at("adapter") +
                                                   "}, {name: b, model: " + at("base") +
                                                   "}]\nsources: [{name: b, rollouts: " + at("b.jsonl") +
                                                   "}]\npositions: 4\n");
  const auto diagnosed = run_ropd("--quiet diagnose --config " + at("d.yaml"));
  ASSERT_EQ(diagnosed.exit_code, 0) << diagnosed.err;
  const Json kl = parse_json(read_file(directory_ / "out" / "diagnosis.json"), "diagnosis")["kl"];
  EXPECT_EQ(kl[0][0].get<double>(), 0) << "the adapter against itself";
  EXPECT_GT(kl[1][0].get<double>(), 1e-11) << "its base, which a small change has left";
}

TEST_F(AdapterCommands, ATeacherThatIsAnAdapterIsStreamedWithTheSameBits) {
  (void)responses_of("base", "b.jsonl");
  const std::string score = "score --quiet --top-k 4 --model " + at("base") + " --teacher " + at("adapter") +
                            " --rollouts " + at("b.jsonl") + " --out ";
  const auto resident = run_ropd(score + at("resident"));
  ASSERT_EQ(resident.exit_code, 0) << resident.err;
  const auto streamed = run_ropd(score + at("streamed") + " --teacher-memory-gb 0");
  ASSERT_EQ(streamed.exit_code, 0) << streamed.err;
  EXPECT_EQ(read_file(directory_ / "streamed"), read_file(directory_ / "resident"));
  EXPECT_NE(read_file(directory_ / "resident"), read_file(directory_ / "b.jsonl.scores"));
}

TEST_F(AdapterCommands, ABaseThatIsNotHereIsAskedFor) {
  save("hub", "Qwen/Qwen3-0.6B");
  const std::string command = "generate --quiet --max-tokens 4 --model " + at("hub") + " --prompts " +
                              at("prompts.jsonl") + " --out " + at("h.jsonl");
  const auto refused = run_ropd(command);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("--base DIR"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "h.jsonl"));
  EXPECT_EQ(run_ropd(command + " --base " + at("base")).exit_code, 0);
  test::write_tiny_model(directory_ / "tuned", test::tiny_config("Qwen3ForCausalLM"), DType::bf16, 2);
  const auto other = run_ropd("merge " + at("adapter") + " --base " + at("tuned") + " --out " + at("x"));
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("was trained on another base"));
}

// The laboratory's student, which has a tokenizer, below an adapter that names its base as a hub does.
TEST_F(AdapterCommands, EveryCommandThatTakesAModelTakesAnAdapterAndItsBase) {
  const std::string base = ROPD_SOURCE_DIR "/lab/models/student", queries = at("queries.jsonl");
  save_on(base, "hub", "someone/tuned");
  write_file_atomically(queries, "{\"id\": \"a\", \"problem\": \"2eacadd?\", \"answer\": \"6\"}\n");
  write_file_atomically(at("texts.jsonl"), "{\"text\": \"2eac\"}\n");
  write_file_atomically(at("pairs.jsonl"), "{\"prompt\": \"2eac\", \"response\": \"6\"}\n");
  write_file_atomically(
      at("suite.yaml"),
      "name: one\nprompt_suffix: \"\"\nbenchmarks:\n  - {name: first, file: queries.jsonl, samples: 1}\n");
  write_file_atomically(at("train.yaml"),
                        "student: " + at("hub") + "\nteacher: " + at("hub") + "\noutput: " + at("run") +
                            "\ndata: {queries: " + queries +
                            ", select: {all: true}, prompt_suffix: \"\"}\n"
                            "rollout: {max_response_tokens: 4, precision: f32}\n"
                            "train: {iterations: 1, responses_per_iteration: 2, minibatch: 2}\n"
                            "objective: {top_k: 4}\ncurriculum: {stages: [{source: current}]}\n");
  write_file_atomically(at("sft.yaml"), "model: " + at("hub") + "\ndata: " + at("pairs.jsonl") +
                                            "\noutput: " + at("sft") + "\nsteps: 1\n");
  const std::string eval = "eval --quiet --suite " + at("suite.yaml") + " --data " + at("") +
                           " --max-tokens 8 --precision f32 --out ";
  const std::string keys = " student_base=" + base + " teacher_base=" + base;
  const std::string score = "score --quiet --top-k 4 --rollouts " + at("sampled.jsonl") + " --out ";
  const auto diagnosis = [&](const std::string& name, const std::string& student,
                             const std::string& teacher) {
    write_file_atomically(at(name + ".yaml"), "teacher: " + at("hub") + teacher + "\noutput: " + at(name) +
                                                  "\nstudents: [{name: a, model: " + at("hub") + student +
                                                  "}]\nsources: [{name: a, rollouts: " + at("sampled.jsonl") +
                                                  "}]\npositions: 2\n");
    return "diagnose --quiet --config " + at(name + ".yaml");
  };
  const std::pair<std::string, std::string> commands[] = {
      {"tokenize --quiet --model " + at("hub") + " --in " + at("texts.jsonl") + " --out " + at("ids.jsonl"),
       " --base " + base},
      {"data stats --in " + queries + " --model " + at("hub"), " --base " + base},
      {"generate --quiet --max-tokens 4 --precision f32 --model " + at("hub") + " --prompts " + queries +
           " --out " + at("sampled.jsonl"),
       " --base " + base},
      {score + at("scores.jsonl") + " --model " + at("hub"), " --base " + base},
      {score + at("scores-t.jsonl") + " --model " + base + " --teacher " + at("hub"),
       " --teacher-base " + base},
      {"merge " + at("hub") + " --out " + at("merged"), " --base " + base},
      {eval + at("eval") + " --model " + at("hub"), " --base " + base},
      {eval + at("eval-t") + " --model " + base + " --teacher " + at("hub"), " --teacher-base " + base},
      {eval + at("eval-s") + " --model " + base + " --student " + at("hub"), " --student-base " + base},
      {"plan " + at("train.yaml"), keys},
      {"train --quiet " + at("train.yaml"), keys},
      {"sft --quiet " + at("sft.yaml"), " base=" + base},
      {"inspect " + at("hub"), " --base " + base},
      {"verify " + at("hub"), " --base " + base},
  };
  for (const auto& [command, named] : commands) {
    const auto refused = run_ropd(command);
    EXPECT_EQ(refused.exit_code, 1) << command;
    EXPECT_THAT(refused.err, HasSubstr("its base is 'someone/tuned', which is no folder here")) << command;
    const auto done = run_ropd(command + named);
    EXPECT_EQ(done.exit_code, 0) << command << named << "\n" << done.err;
  }
  for (const auto& [student, teacher] : {std::pair<std::string, std::string>{"", ""},
                                         {", base: " + base, ""},
                                         {"", "\nteacher_base: " + base}}) {
    const auto refused = run_ropd(diagnosis("refused", student, teacher));
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr("its base is 'someone/tuned', which is no folder here"));
  }
  const auto diagnosed = run_ropd(diagnosis("diagnosed", ", base: " + base, "\nteacher_base: " + base));
  EXPECT_EQ(diagnosed.exit_code, 0) << diagnosed.err;
  const auto verified = run_ropd("verify " + at("run"));
  EXPECT_EQ(verified.exit_code, 0) << verified.err << verified.out;
  const auto plain = run_ropd("tokenize --model " + base + " --base " + base + " --in " + at("texts.jsonl") +
                              " --out " + at("none.jsonl"));
  EXPECT_EQ(plain.exit_code, 1);
  EXPECT_THAT(plain.err, HasSubstr("a base is for adapters"));
}

}  // namespace
}  // namespace ropd
