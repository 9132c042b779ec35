// ropd diagnose as a user meets it, on random models: what must be zero is zero, and the parts add up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "base/json.h"
#include "support/model_files.h"
#include "system/shell.h"

namespace ropd {
namespace {

using test::run_ropd;
using testing::HasSubstr;

class Diagnose : public testing::Test {
 protected:
  Diagnose() {
    for (const char* name : {"a", "b", "teacher"}) {
      test::write_tiny_model(directory_ / name, test::tiny_config("Qwen3ForCausalLM"), DType::f32, seed_++);
      write("prompts.jsonl",
            "{\"id\": \"x\", \"prompt_ids\": [1, 3]}\n{\"id\": \"y\", \"prompt_ids\": [4]}\n");
      EXPECT_EQ(run_ropd("generate --quiet --n 3 --max-tokens 12 --model " + at(name) + " --prompts " +
                         at("prompts.jsonl") + " --out " + at(std::string(name) + ".jsonl"))
                    .exit_code,
                0);
    }
    write("d.yaml", "teacher: " + at("teacher") + "\noutput: " + at("out") +
                        "\nstudents: [{name: a, model: " + at("a") + "}, {name: b, model: " + at("b") +
                        "}, {name: teacher, model: " + at("teacher") + "}]\nsources: [{name: a, rollouts: " +
                        at("a.jsonl") + "}, {name: b, rollouts: " + at("b.jsonl") +
                        "}]\npositions: 5\nconcentration: [{rank_by: teacher, first: b, second: a}, "
                        "{rank_by: b, first: b, second: a}]\nprobes: "
                        "{trajectories: 6, minibatch: 2, coordinates: 3, top_k: 4}\n");
  }
  void write(const std::string& name, const std::string& text) const {
    write_file_atomically(directory_ / name, text);
  }
  std::string at(const std::string& name) const { return (directory_ / name).string(); }
  test::Outcome diagnose(const std::string& more = "") const {
    return run_ropd("--quiet diagnose --config " + at("d.yaml") + " " + more);
  }

  const test::TemporaryDirectory directory_;
  uint64_t seed_ = 1;
};

TEST_F(Diagnose, OneThatWasKilledBetweenItsTwoFilesIsMadeAgain) {
  ASSERT_EQ(diagnose().exit_code, 0);
  const std::string whole = read_file(directory_ / "out" / "diagnosis.json");
  std::filesystem::remove(directory_ / "out" / "diagnosis.json");
  write("out/samples.jsonl", "{}\n");
  EXPECT_EQ(diagnose().exit_code, 1) << "samples of whoever wrote them";
  write("out/diagnosis.unfinished", "");
  ASSERT_EQ(diagnose().exit_code, 0);
  EXPECT_EQ(read_file(directory_ / "out" / "diagnosis.json"), whole);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out" / "diagnosis.unfinished"));
  EXPECT_EQ(diagnose().exit_code, 1) << "a finished one stays";
}

TEST_F(Diagnose, WritesTablesThatAddUp) {
  const auto outcome = diagnose();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("KL to the teacher"));
  const Json d = parse_json(read_file(directory_ / "out" / "diagnosis.json"), "diagnosis");
  ASSERT_EQ(d["kl"].size(), 3u);
  for (const double value : d["kl"][2]) EXPECT_NEAR(value, 0, 1e-6) << "the teacher against itself";
  EXPECT_GT(d["kl"][0][0].get<double>(), 0);

  ASSERT_EQ(d["fit_and_shift"].size(), 1u) << "a and b have rollouts of their own, the teacher has none";
  const Json& x = d["fit_and_shift"][0];
  const auto kl = [&](size_t student, size_t source) { return d["kl"][student][source].get<double>(); };
  EXPECT_NEAR(x["change"].get<double>(), kl(0, 0) - kl(1, 1), 1e-12);
  EXPECT_NEAR(x["fit"].get<double>(), kl(0, 0) - kl(1, 0), 1e-12) << "both on the states of a";
  EXPECT_NEAR(x["shift"].get<double>(), kl(1, 0) - kl(1, 1), 1e-12) << "b on the states of a and on its own";

  // Two rankings of the positions of a's responses: each splits the same sums into a tenth and the rest.
  ASSERT_EQ(d["concentration"].size(), 4u) << "two a source";
  const Json &by_teacher = d["concentration"][0], &by_b = d["concentration"][1];
  EXPECT_EQ(by_teacher["rank_by"], "teacher");
  EXPECT_EQ(by_b["rank_by"], "b");
  double n = 0;
  std::istringstream lines(read_file(directory_ / "a.jsonl"));
  for (std::string line; std::getline(lines, line);)
    n += static_cast<double>(std::min<size_t>(5, parse_json(line, "a.jsonl")["response_ids"].size()));
  const double top = std::floor(n / 10 + 0.5);
  const auto sum = [&](const Json& c, size_t student) {
    return top * c["top_tenth"][student].get<double>() + (n - top) * c["rest"][student].get<double>();
  };
  for (const size_t student : {0, 1}) EXPECT_NEAR(sum(by_teacher, student), sum(by_b, student), 1e-9);
  EXPECT_GE(by_b["top_tenth"][0].get<double>(), by_b["rest"][0].get<double>()) << "b by its own KL";
  EXPECT_NEAR(by_b["top_share_of_difference"].get<double>(),
              top * (by_b["top_tenth"][1].get<double>() - by_b["top_tenth"][0].get<double>()) /
                  (sum(by_b, 1) - sum(by_b, 0)),
              1e-9);

  ASSERT_EQ(d["probes"].size(), 3u);
  EXPECT_EQ(d["probes"][0]["norms"][1]["minibatches"], 3);
  EXPECT_GT(d["probes"][0]["norms"][1]["mean"].get<double>(), 0);
  EXPECT_EQ(d["probes"][2]["norms"][0]["mean"], 0) << "no gradient where student and teacher are one";
  EXPECT_THAT(outcome.out, HasSubstr("none, a gradient is zero everywhere"));
  EXPECT_EQ(d["likelihood"].size(), 4u);
  EXPECT_EQ(diagnose("--overwrite --threads 1").out, outcome.out) << "threads do not show";
  const std::string whole = read_file(directory_ / "out" / "diagnosis.json");
  const auto streamed = run_ropd("diagnose --config " + at("d.yaml") + " --overwrite --teacher-memory-gb 0");
  EXPECT_THAT(streamed.err, HasSubstr("teacher: streamed, ")) << streamed.err;
  EXPECT_EQ(read_file(directory_ / "out" / "diagnosis.json"), whole) << "nor does a streamed teacher";
}

TEST_F(Diagnose, RefusesWhatItCannotUse) {
  EXPECT_THAT(diagnose("students=[]").err, HasSubstr("students is empty"));
  EXPECT_THAT(diagnose("sources.1.name=a").err, HasSubstr("\"a\" is there twice"));
  EXPECT_THAT(diagnose("sources.1.rollouts=" + at("none.jsonl")).err, HasSubstr("none.jsonl"));
  EXPECT_THAT(diagnose("probes.minibach=3").err, HasSubstr("did you mean 'probes.minibatch'"));
  EXPECT_THAT(diagnose("concentration.0.rank_by=techer").err,
              HasSubstr("\"techer\", which is no student; did you mean teacher?"));
  EXPECT_THAT(diagnose("concentration.0.second=b").err, HasSubstr("compares b with itself"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out"));
}

// Rollouts come through a pipe behind more empty lines than it holds: the model is written to when the command has
// opened it and has begun to read them.
TEST_F(Diagnose, NoticesThatAModelIsWrittenTo) {
  const std::string weights = at("b/model.safetensors");
  const auto outcome = test::run_shell("{ yes '' | head -n 1000000; touch " + weights + "; cat " + at("a.jsonl") +
                                       "; } | " + ROPD_PROGRAM + " --quiet diagnose --config " + at("d.yaml") +
                                       " sources.0.rollouts=/dev/stdin");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(weights + ": was written to while this command used it"));
  EXPECT_FALSE(std::filesystem::exists(at("out/diagnosis.json")));
}

// A rollout file of its own output, by whatever name, and files that are there already.
TEST_F(Diagnose, ReplacesNothingThatItReadsOrWasNotAskedToReplace) {
  const std::string more = " probes.trajectories=0";
  std::filesystem::create_directory(directory_ / "out");
  std::filesystem::rename(directory_ / "b.jsonl", directory_ / "out" / "samples.jsonl");
  std::filesystem::remove(directory_ / "b.meta.json");
  const std::string rollouts = read_file(directory_ / "out" / "samples.jsonl");
  const auto refused = diagnose("--overwrite sources.1.rollouts=" + at("out/samples.jsonl") + more);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("samples.jsonl: is an input of this command"));
  EXPECT_THAT(diagnose("sources.1.rollouts=" + at("a.jsonl") + more).err,
              HasSubstr("samples.jsonl: exists already; --overwrite"));
  EXPECT_EQ(read_file(directory_ / "out" / "samples.jsonl"), rollouts);
  write("out/diagnosis.json", read_file(directory_ / "d.yaml"));
  EXPECT_THAT(run_ropd("--quiet diagnose --overwrite --config " + at("out/diagnosis.json")).err,
              HasSubstr("diagnosis.json: is an input of this command"));
}

// The last student's shape is known before a weight of the first is read, let alone computed with.
TEST_F(Diagnose, ChecksEveryStudentBeforeItComputesAnything) {
  std::string weights = read_file(directory_ / "a" / "model.safetensors");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, weights.data(), sizeof header_bytes);
  weights.replace(8 + header_bytes, 4, 4, '\xff');  // NaN in the first tensor
  write("a/model.safetensors", weights);
  EXPECT_THAT(diagnose().err, HasSubstr("holds NaN or infinity"));
  test::write_tiny_model(directory_ / "other", test::tiny_config("Qwen3ForCausalLM", {{"vocab_size", "40"}}));
  EXPECT_THAT(diagnose("students.2.model=" + at("other")).err,
              HasSubstr("other: has a vocabulary of 40 entries, the teacher 32"));
  test::write_tiny_model(directory_ / "short",
                         test::tiny_config("Qwen3ForCausalLM", {{"max_position_embeddings", "4"}}));
  EXPECT_THAT(diagnose("students.2.model=" + at("short")).err, HasSubstr("max_position_embeddings = 4"));
  test::write_tiny_model(directory_ / "experts", test::tiny_config("Qwen3MoeForCausalLM"));
  EXPECT_THAT(diagnose("students.2.model=" + at("experts")).err, HasSubstr("probes.trajectories=0"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out"));
}

TEST_F(Diagnose, ShowsControlCharactersOfNames) {
  const auto outcome = diagnose("'students.0.name=\"a\\e[2J\"' concentration=[] probes.trajectories=0");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::AllOf(HasSubstr("a␛[2J"), testing::Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace ropd
