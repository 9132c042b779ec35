#include "io/score_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"

namespace ropd::io {
namespace {

TEST(ScoresLine, ReadsBackToTheSameFloats) {
  Scores scores;
  scores.query_id = "a \"quoted\" id";
  scores.sample = 3;
  scores.top_k = 2;
  scores.candidates = {5, 1, 7, 2};
  scores.student_logprobs = {-0.1f, -2.3456789f, -1e-8f, -88.7f};
  scores.teacher_logprobs = {-0.2f, -INFINITY, -3.0f, -4.0f};
  scores.sampled_logprobs = {-0.1f, -0.33333334f};
  scores.teacher_sampled_logprobs = {-0.2f, -1.0f};
  const Json line = parse_json(scores_line(scores), "line");
  EXPECT_EQ(line["query_id"], scores.query_id);
  EXPECT_EQ(line["candidates"], Json::parse("[[5,1],[7,2]]"));
  EXPECT_EQ(line["student_logprobs"][0][1].get<float>(), -2.3456789f);
  EXPECT_EQ(line["student_logprobs"][1][0].get<float>(), -1e-8f);
  EXPECT_TRUE(line["teacher_logprobs"][0][1].is_null());
  EXPECT_EQ(line["sampled_logprobs"][1].get<float>(), -0.33333334f);
}

TEST(ScoresLine, LeavesOutATeacherThatWasNotAsked) {
  Scores scores;
  scores.sampled_logprobs = {-1.0f};
  const Json line = parse_json(scores_line(scores), "line");
  EXPECT_FALSE(line.contains("teacher_logprobs"));
  EXPECT_EQ(line["candidates"], Json::array());
}

}  // namespace
}  // namespace ropd::io
