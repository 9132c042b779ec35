#include "distill/peer_bytes.h"

#include <gtest/gtest.h>

namespace ropd::distill {
namespace {

template <class Record>
Record there_and_back(const Record& record) {
  ByteWriter writer;
  put(writer, record);
  ByteReader reader(writer.bytes());
  Record result;
  get(reader, result);
  EXPECT_TRUE(reader.is_at_end());
  return result;
}

Rollout rollout(Token first) {
  return {.query_id = "q",
          .sample = 3,
          .prompt_ids = {1, 2},
          .response_ids = {first, 4},
          .finish = Finish::eos,
          .policy_step = 9,
          .seed = 5,
          .text = "hi",
          .answer = "42",
          .sampled_logprobs = {-1, -2}};
}

TEST(PeerBytes, RolloutComesBackWhole) {
  const Rollout r = there_and_back(rollout(3));
  EXPECT_EQ(r.query_id, "q");
  EXPECT_EQ(r.sample, 3u);
  EXPECT_EQ(r.prompt_ids, (std::vector<Token>{1, 2}));
  EXPECT_EQ(r.response_ids, (std::vector<Token>{3, 4}));
  EXPECT_EQ(r.finish, Finish::eos);
  EXPECT_EQ(r.policy_step, 9u);
  EXPECT_EQ(r.seed, 5u);
  EXPECT_EQ(r.text, "hi");
  EXPECT_EQ(r.answer, "42");
  EXPECT_EQ(r.sampled_logprobs, (std::vector<float>{-1, -2}));
}

TEST(PeerBytes, TheTeachersSideIsMadeFromCandidatesAndComesBackAlone) {
  const Scores whole{"q", 1, 2, {7, 8}, {-1, -2}, {-3, -4}, {-5}, {-6}, {0.5f}, {1}, {0.25f}};
  ByteWriter question, answer;
  put_candidates(question, whole);
  put_teachers_side(answer, whole);
  Scores asked, found;
  ByteReader question_reader(question.bytes()), answer_reader(answer.bytes());
  get_candidates(question_reader, asked);
  get_teachers_side(answer_reader, found);
  EXPECT_TRUE(question_reader.is_at_end() && answer_reader.is_at_end());
  EXPECT_EQ(asked.top_k, 2u);
  EXPECT_EQ(asked.candidates, whole.candidates);
  EXPECT_EQ(found.teacher_logprobs, whole.teacher_logprobs);
  EXPECT_EQ(found.teacher_sampled_logprobs, whole.teacher_sampled_logprobs);
  EXPECT_EQ(found.is_aligned, whole.is_aligned);
  EXPECT_EQ(found.overlap, whole.overlap);
  EXPECT_TRUE(found.student_logprobs.empty());
}

TEST(PeerBytes, ScoresComeBackWhole) {
  const Scores s =
      there_and_back(Scores{"q", 1, 2, {7, 8}, {-1, -2}, {-3, -4}, {-5}, {-6}, {0.5f}, {1}, {0.25f}});
  EXPECT_EQ(s.query_id, "q");
  EXPECT_EQ(s.sample, 1u);
  EXPECT_EQ(s.top_k, 2u);
  EXPECT_EQ(s.candidates, (std::vector<Token>{7, 8}));
  EXPECT_EQ(s.student_logprobs, (std::vector<float>{-1, -2}));
  EXPECT_EQ(s.teacher_logprobs, (std::vector<float>{-3, -4}));
  EXPECT_EQ(s.sampled_logprobs, (std::vector<float>{-5}));
  EXPECT_EQ(s.teacher_sampled_logprobs, (std::vector<float>{-6}));
  EXPECT_EQ(s.student_entropy, (std::vector<float>{0.5f}));
  EXPECT_EQ(s.is_aligned, (std::vector<uint8_t>{1}));
  EXPECT_EQ(s.overlap, (std::vector<float>{0.25f}));
}

TEST(PeerBytes, GradientConfigComesBackButForWhatIsTheRanksOwn) {
  GradientConfig config{.objective = {.kind = ObjectiveKind::jsd,
                                      .weights = CandidateWeights::uniform,
                                      .eos = EosControl::only,
                                      .eos_ids = {4, 5},
                                      .clip = 0.1f,
                                      .dual_clip = 5,
                                      .max_log_ratio = 7,
                                      .beta = 0.25f,
                                      .student_temperature = 2,
                                      .teacher_temperature = 3},
                        .old_is_current = true};
  const GradientConfig c = there_and_back(config);
  EXPECT_EQ(c.objective.kind, ObjectiveKind::jsd);
  EXPECT_EQ(c.objective.weights, CandidateWeights::uniform);
  EXPECT_EQ(c.objective.eos, EosControl::only);
  EXPECT_EQ(c.objective.eos_ids, (std::vector<Token>{4, 5}));
  EXPECT_EQ(c.objective.clip, 0.1f);
  EXPECT_EQ(c.objective.dual_clip, 5);
  EXPECT_EQ(c.objective.max_log_ratio, 7);
  EXPECT_EQ(c.objective.beta, 0.25f);
  EXPECT_EQ(c.objective.student_temperature, 2);
  EXPECT_EQ(c.objective.teacher_temperature, 3);
  EXPECT_TRUE(c.old_is_current);
}

TEST(PeerBytes, RankGetsItsShardsAndKnowsOfTheOthers) {
  const std::vector<Rollout> rollouts = {rollout(10), rollout(11), rollout(12), rollout(13)};
  Supervision supervision;
  supervision.num_candidates = 1;
  supervision.ids = {7, 8};
  supervision.old_logprobs = {-1, -2};
  supervision.coefficients = {0.5f, -0.5f};
  supervision.teacher_logprobs = {-3, -4};
  supervision.is_valid = {1, 0};
  const auto item = [&](size_t i) { return TrainingItem{&rollouts[i], &supervision, 0.25f}; };
  const std::vector<Shard> minibatch = {{{item(0)}}, {{item(1)}, {item(2)}}, {{item(3)}}};
  ByteWriter writer;
  put_shards(writer, minibatch, 1, 2);
  ByteReader reader(writer.bytes());
  const ReceivedShards received = get_shards(reader);
  ASSERT_EQ(received.shards.size(), 3u);
  EXPECT_TRUE(received.shards[0].empty() && received.shards[2].empty());
  ASSERT_EQ(received.shards[1].size(), 2u);
  EXPECT_EQ(received.shards[1][0][0].rollout->response_ids[0], 11);
  const TrainingItem& last = received.shards[1][1][0];
  EXPECT_EQ(last.rollout->response_ids[0], 12);
  EXPECT_EQ(last.token_weight, 0.25f);
  EXPECT_EQ(last.supervision->num_candidates, 1u);
  EXPECT_EQ(last.supervision->ids, supervision.ids);
  EXPECT_EQ(last.supervision->old_logprobs, supervision.old_logprobs);
  EXPECT_EQ(last.supervision->coefficients, supervision.coefficients);
  EXPECT_EQ(last.supervision->teacher_logprobs, supervision.teacher_logprobs);
  EXPECT_EQ(last.supervision->is_valid, supervision.is_valid);
}

}  // namespace
}  // namespace ropd::distill
