#include "io/sample_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

ResponseSample example() {
  return {.iteration = 3,
          .query_id = "q7",
          .sample = 1,
          .question = "2+2?",
          .answer = "4",
          .correct = true,
          .finish = Finish::eos,
          .num_tokens = 2,
          .tokens = {{{"4", 19, -0.25, -1.5}, {{"4", 19, -0.25, -1.5}, {"5", 20, -2.0, std::nullopt}}},
                     {{"<end>", 36, -0.0001, -INFINITY}, {}}}};
}

TEST(SampleFile, IsReadAsItWasWritten) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "samples" / "iter-0003.jsonl";
  write_samples(path, {example(), example()});
  const auto read = read_samples(path);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].query_id, "q7");
  EXPECT_EQ(read[0].correct, true);
  EXPECT_EQ(read[0].finish, Finish::eos);
  EXPECT_EQ(read[0].tokens[0].chosen.student_logprob, -0.25);
  EXPECT_EQ(read[0].tokens[0].candidates[1].text, "5");
  EXPECT_FALSE(read[0].tokens[0].candidates[1].teacher_logprob);
  EXPECT_FALSE(read[0].tokens[1].chosen.teacher_logprob);  // not finite
  EXPECT_EQ(sample_line(read[0]), sample_line(example()));
}

TEST(SampleFile, SaysOnlyWhereItIsFromWhatItIsFrom) {
  EXPECT_THAT(sample_line(example()), testing::Not(testing::HasSubstr("benchmark")));
  ResponseSample sample = example();
  sample.benchmark = "aime24";
  sample.source = "theta0";
  sample.student = "R20";
  const auto read = parse_sample(parse_json(sample_line(sample), "test"), "test");
  EXPECT_EQ(read.benchmark, "aime24");
  EXPECT_EQ(read.source, "theta0");
  EXPECT_EQ(read.student, "R20");
}

TEST(SampleFile, IsBoundedHoweverLongAResponseIs) {
  ResponseSample sample = example();
  sample.tokens.assign(10'000, sample.tokens[0]);
  for (SampleToken& token : sample.tokens) token.candidates.resize(40);
  sample.num_tokens = sample.tokens.size();
  const auto read = parse_sample(parse_json(sample_line(sample), "test"), "test");
  EXPECT_EQ(read.num_tokens, 10'000u);
  EXPECT_EQ(read.tokens.size(), kMaxSampleTokens);
  EXPECT_EQ(read.tokens[255].candidates.size(), kMaxSampleCandidates);
  EXPECT_TRUE(read.tokens[256].candidates.empty());
}

TEST(SampleFile, RefusesWhatIsNoSample) {
  const test::TemporaryDirectory directory;
  const Path path = directory / "samples.jsonl";
  for (const char* line : {"{}", R"({"iteration":"x"})", R"([1])"}) {
    std::ofstream(path, std::ios::trunc) << line << "\n";
    try {
      (void)read_samples(path);
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("samples.jsonl:1"));
    }
  }
}

}  // namespace
}  // namespace ropd::io
