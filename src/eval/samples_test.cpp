#include "eval/samples.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "eval/responses.h"
#include "io/sample_file.h"
#include "support/byte_tokenizer.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::eval {
namespace {

TEST(ChooseSamples, SpreadsOverTheBatch) {
  EXPECT_EQ(choose_samples(480, 4), (std::vector<size_t>{0, 120, 240, 360}));
  EXPECT_EQ(choose_samples(3, 8), (std::vector<size_t>{0, 1, 2}));
  EXPECT_TRUE(choose_samples(0, 4).empty());
  EXPECT_TRUE(choose_samples(480, 0).empty());
}

// Four questions of two benchmarks with two responses each, over bytes.
class EvaluationSamples : public ::testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  text::Tokenizer tokenizer_ = test::byte_tokenizer();
  Suite suite_{.name = "s", .fingerprint = "suite"};
  model::Parameters student_ = test::random_parameters(config(), 3),
                    teacher_ = test::random_parameters(config(), 4);

  static ModelConfig config() {
    ModelConfig config = test::tiny_config(Architecture::qwen3);
    config.vocab_size = 256;
    return config;
  }
  void SetUp() override {
    const std::vector<Query> questions = {{"q1", {{"user", "1+1?"}}, "2"}, {"q2", {{"user", "2+2?"}}, "4"}};
    std::string lines;
    for (const char* name : {"a", "b"}) {
      suite_.benchmarks.push_back({.name = name, .samples = 2, .questions = questions});
      for (const Query& question : questions)
        for (const uint32_t sample : {0u, 1u})
          lines += response_line({.query_id = question.id,
                                  .sample = sample,
                                  .prompt_ids = {1, 2, 3},
                                  .response_ids = tokenizer_.encode("\\boxed{2}" + std::string(sample, '!')),
                                  .finish = Finish::eos,
                                  .text = "\\boxed{2}"},
                                 name) +
                   "\n";
    }
    write_file_atomically(directory_ / "responses.jsonl", lines);
  }
  std::vector<ResponseSample> write(size_t count, const ScoreResponses& score) {
    write_samples(directory_.path(), suite_, tokenizer_, count, score);
    return io::read_samples(directory_ / "samples.jsonl");
  }
};

TEST_F(EvaluationSamples, AreFirstResponsesSpreadOverTheSuite) {
  const auto samples = write(2, score_by(student_.weights(), std::nullopt, distill::Precision::f32));
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].benchmark + samples[0].query_id, "aq1");
  EXPECT_EQ(samples[1].benchmark + samples[1].query_id, "bq1");
  EXPECT_EQ(samples[0].sample, 0u);
  EXPECT_EQ(samples[0].question, "1+1?");
  EXPECT_EQ(samples[0].answer, "2");
  EXPECT_EQ(samples[0].correct, true);
  EXPECT_EQ(samples[0].finish, Finish::eos);
  const auto all = write(8, score_by(student_.weights(), std::nullopt, distill::Precision::f32));
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].correct, false);  // q2 of a
}

TEST_F(EvaluationSamples, HaveTheTeachersSideOnlyWhenThereIsATeacher) {
  const auto alone = write(1, score_by(student_.weights(), std::nullopt, distill::Precision::f32));
  const auto both = write(1, score_by(student_.weights(), teacher_.weights(), distill::Precision::f32));
  ASSERT_EQ(alone[0].tokens.size(), both[0].tokens.size());
  for (size_t t = 0; t < both[0].tokens.size(); ++t) {
    const SampleToken& token = both[0].tokens[t];
    EXPECT_FALSE(alone[0].tokens[t].chosen.teacher_logprob);
    EXPECT_TRUE(token.chosen.teacher_logprob);
    EXPECT_EQ(alone[0].tokens[t].chosen.student_logprob, token.chosen.student_logprob);
    ASSERT_EQ(token.candidates.size(), io::kMaxSampleCandidates);
    EXPECT_GE(*token.candidates[0].student_logprob, *token.candidates[1].student_logprob);
  }
}

TEST_F(EvaluationSamples, AModelAgreesWithItself) {
  const auto samples = write(1, score_by(student_.weights(), student_.weights(), distill::Precision::f32));
  for (const SampleToken& token : samples[0].tokens)
    EXPECT_EQ(token.chosen.student_logprob, token.chosen.teacher_logprob);
}

TEST_F(EvaluationSamples, NoneAreWrittenWhenNoneAreWanted) {
  write_samples(directory_.path(), suite_, tokenizer_, 0, {});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "samples.jsonl"));
}

}  // namespace
}  // namespace ropd::eval
