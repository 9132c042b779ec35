#include "distill/scoring.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/vocab_head.h"
#include "model/layer_stream.h"
#include "support/model_files.h"
#include "support/naive_model.h"
#include "support/test_data.h"

namespace ropd::distill {
namespace {

using test::NaiveModel;
using test::random_parameters;
using test::tiny_config;

// Some to the same prompt, not next to each other.
std::vector<Rollout> some_rollouts() {
  std::vector<Rollout> rollouts(6);
  rollouts[0] = {.query_id = "a", .prompt_ids = {1, 2, 3}, .response_ids = {4, 5, 36, 7}};
  rollouts[1] = {.query_id = "b", .sample = 1, .prompt_ids = {9}, .response_ids = {8}};
  rollouts[2] = {.query_id = "c", .prompt_ids = {5, 5}, .response_ids = {0, 0, 11, 12, 13}};
  rollouts[3] = {.query_id = "a", .sample = 1, .prompt_ids = {1, 2, 3}, .response_ids = {6, 2}};
  rollouts[4] = {.query_id = "c", .sample = 1, .prompt_ids = {5, 5}, .response_ids = {3}};
  rollouts[5] = {.query_id = "a", .sample = 2, .prompt_ids = {1, 2, 3}, .response_ids = {4, 5, 9}};
  return rollouts;
}

TEST(ScoreStudent, EqualsTheOracleOverTheFullVocabulary) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 1);
  const auto rollouts = some_rollouts();
  model::Workspace workspace;
  const auto scores = score_student(parameters.weights(), rollouts, {.top_k = 5}, workspace);
  const NaiveModel oracle(parameters);
  for (size_t i = 0; i < rollouts.size(); ++i) {
    auto tokens = rollouts[i].prompt_ids;
    tokens.insert(tokens.end(), rollouts[i].response_ids.begin(), rollouts[i].response_ids.end());
    const auto logits = oracle.logits(tokens);
    for (size_t t = 0; t < rollouts[i].response_ids.size(); ++t) {
      const auto logprobs = NaiveModel::log_softmax(logits[rollouts[i].prompt_ids.size() - 1 + t]);
      std::vector<Token> order(logprobs.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](Token a, Token b) { return logprobs[a] > logprobs[b]; });
      double entropy = 0;
      for (const double l : logprobs) entropy -= std::exp(l) * l;
      for (size_t j = 0; j < 5; ++j) {
        EXPECT_EQ(scores[i].candidates[t * 5 + j], order[j]);
        EXPECT_NEAR(scores[i].student_logprobs[t * 5 + j], logprobs[order[j]], 1e-5);
      }
      EXPECT_NEAR(scores[i].sampled_logprobs[t], logprobs[rollouts[i].response_ids[t]], 1e-5);
      EXPECT_NEAR(scores[i].student_entropy[t], entropy, 1e-4);
    }
  }
}

TEST(ScoreStudent, DoesNotDependOnTheBatch) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen2), 2);
  const auto rollouts = some_rollouts();
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles}) {
    model::Workspace workspace;
    const auto together =
        score_student(parameters.weights(), rollouts, {.top_k = 7, .precision = precision}, workspace);
    const auto apart = score_student(parameters.weights(), rollouts,
                                     {.top_k = 7, .precision = precision, .batch_tokens = 1}, workspace);
    for (size_t i = 0; i < rollouts.size(); ++i) {
      EXPECT_EQ(together[i].candidates, apart[i].candidates);
      EXPECT_EQ(together[i].student_logprobs, apart[i].student_logprobs);
      EXPECT_EQ(together[i].sampled_logprobs, apart[i].sampled_logprobs);
    }
  }
}

TEST(ScoreStudent, HasTheSameBitsOnManyThreads) {
  ModelConfig shape = tiny_config(Architecture::qwen3);
  shape.hidden_size = 64;
  shape.intermediate_size = 192;
  shape.vocab_size = 1500;
  const auto parameters = random_parameters(shape, 2, 0.2f);
  std::vector<Rollout> rollouts;
  for (int i = 0; i < 20; ++i)
    for (const Rollout& rollout : some_rollouts()) rollouts.push_back(rollout);
  const size_t before = num_threads();
  for (const auto sharing : {model::Sharing::sequences, model::Sharing::products}) {
    model::Weights weights = parameters.weights();
    weights.execution.sharing = sharing;
    std::vector<Scores> expected;
    for (const size_t threads : {1, 8, 24, 64}) {
      set_num_threads(threads);
      model::Workspace workspace;
      const auto scores = score_student(weights, rollouts, {.top_k = 7}, workspace);
      if (threads == 1) expected = scores;
      for (size_t i = 0; i < rollouts.size(); ++i) {
        ASSERT_EQ(scores[i].candidates, expected[i].candidates) << threads;
        ASSERT_EQ(scores[i].student_logprobs, expected[i].student_logprobs) << threads;
        ASSERT_EQ(scores[i].student_entropy, expected[i].student_entropy) << threads;
      }
    }
  }
  set_num_threads(before);
}

TEST(AgreeWithPass, SeesTheSmallestDifference) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 6);
  const auto rollouts = some_rollouts();
  model::Workspace workspace;
  const ScoringConfig config{.top_k = 5};
  const auto scores = score_student(parameters.weights(), rollouts, config, workspace);
  const auto agrees = [&](auto&& change) {
    auto changed = scores;
    change(changed);
    return agree_with_pass(changed, parameters.weights(), rollouts, config, workspace);
  };
  EXPECT_TRUE(agrees([](auto&) {}));
  const auto next = [](float& x) { x = std::nextafter(x, 1.0f); };
  EXPECT_FALSE(agrees([&](auto& all) { next(all[0].student_logprobs[3]); }));
  EXPECT_FALSE(agrees([&](auto& all) { next(all[0].sampled_logprobs[0]); }));
  EXPECT_FALSE(agrees([&](auto& all) { next(all.back().student_entropy.back()); }));
  EXPECT_FALSE(agrees([](auto& all) { std::swap(all[0].candidates[0], all[0].candidates[1]); }));
}

TEST(AgreeWithPass, IsAskedOfOneIn64) {
  std::vector<int> records(129);
  std::iota(records.begin(), records.end(), 0);
  EXPECT_EQ(to_check(std::span<const int>(records)), (std::vector<int>{0, 64, 128}));
}

TEST(ScoreTeacher, OfPackedWeightsHasTheSameBits) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 7);
  const auto rollouts = some_rollouts();
  for (const auto precision : {Precision::f32, Precision::bf16}) {
    const ScoringConfig config{.top_k = 5, .precision = precision};
    const auto packed = model::pack_weights(parameters.weights(), precision);
    model::Workspace workspace;
    const auto expected = score_student(parameters.weights(), rollouts, config, workspace),
               found = score_student(packed, rollouts, config, workspace);
    for (size_t i = 0; i < rollouts.size(); ++i)
      EXPECT_EQ(found[i].student_logprobs, expected[i].student_logprobs);
  }
}

TEST(ScoreTeacher, OfTheStudentItselfRepeatsItsLogprobsBitForBit) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 3);
  const auto rollouts = some_rollouts();
  model::Workspace workspace;
  auto scores = score_student(parameters.weights(), rollouts, {.top_k = 6}, workspace);
  score_teacher(scores, parameters.weights(), rollouts, {.top_k = 6}, workspace);
  for (const auto& score : scores) {
    EXPECT_EQ(score.teacher_logprobs, score.student_logprobs);
    EXPECT_EQ(score.teacher_sampled_logprobs, score.sampled_logprobs);
    for (const float share : score.overlap) EXPECT_NEAR(share, 1.0f, 1e-6);
  }
}

// A teacher that is the student with its vocabulary in reverse order, reading the same text.
TEST(ScoreTeacher, TranslatesIdsAndMasksWhatHasNoCounterpart) {
  auto config = tiny_config(Architecture::llama, false);
  const auto student = random_parameters(config, 4);
  auto teacher = random_parameters(config, 4);
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"})
    for (const auto& slot : teacher.slots())
      if (slot.name == name)
        for (int64_t v = 0; v < 37; ++v)
          std::copy_n(student.values().begin() + slot.offset + v * 20, 20,
                      teacher.values().begin() + slot.offset + (36 - v) * 20);
  TeacherTranslation translation;
  for (Token id = 0; id < 37; ++id) translation.teacher_id.push_back(id == 7 ? -1 : 36 - id);
  translation.read = [](const Rollout& rollout) {
    TeacherReading reading;
    for (const Token id : rollout.prompt_ids) reading.prompt_ids.push_back(36 - id);
    for (const Token id : rollout.response_ids) {
      reading.position.push_back(static_cast<int32_t>(reading.response_ids.size()));
      reading.response_ids.push_back(36 - id);
    }
    reading.position.back() = -1;
    return reading;
  };
  const auto rollouts = some_rollouts();
  model::Workspace workspace;
  auto scores = score_student(student.weights(), rollouts, {.top_k = 37}, workspace);
  score_teacher(scores, teacher.weights(), rollouts, {.top_k = 37}, workspace, &translation);
  for (size_t i = 0; i < rollouts.size(); ++i)
    for (size_t t = 0; t < rollouts[i].response_ids.size(); ++t) {
      const bool is_last = t + 1 == rollouts[i].response_ids.size();
      EXPECT_EQ(scores[i].is_aligned[t], !is_last);
      for (size_t j = 0; j < 37; ++j) {
        const float value = scores[i].teacher_logprobs[t * 37 + j];
        if (is_last || scores[i].candidates[t * 37 + j] == 7)
          EXPECT_EQ(value, -INFINITY);
        else
          EXPECT_NEAR(value, scores[i].student_logprobs[t * 37 + j], 1e-5);
      }
    }
}

class StreamedScores : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Architectures, StreamedScores,
                         testing::Values("Qwen3ForCausalLM", "Qwen2ForCausalLM", "LlamaForCausalLM",
                                         "Qwen3MoeForCausalLM"));

TEST_P(StreamedScores, AreThoseOfTheResidentModelBitForBitForAnyMemory) {
  const test::TemporaryDirectory folder;
  test::write_tiny_model(folder / "model", test::tiny_config(GetParam(), {{"vocab_size", "37"}}),
                         DType::bf16);
  const auto directory = std::make_shared<const io::ModelDirectory>(folder / "model");
  const auto rollouts = some_rollouts();
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles}) {
    ScoringConfig config{.top_k = 5, .precision = precision, .temperature = 0.7f};
    model::Workspace workspace;
    const model::Weights resident = model::map_weights(directory);
    auto want = score_student(resident, rollouts, config, workspace);
    score_teacher(want, resident, rollouts, config, workspace);
    uint64_t fewest = UINT64_MAX, most = 0;
    config.batch_tokens = 8;
    for (const uint64_t memory : {uint64_t{0}, uint64_t{40'000}, uint64_t{1} << 40}) {
      const model::Weights streamed = model::stream_weights(directory, memory);
      auto scores = score_student(streamed, rollouts, config, workspace);
      score_teacher(scores, streamed, rollouts, config, workspace);
      for (size_t i = 0; i < rollouts.size(); ++i) {
        EXPECT_EQ(scores[i].candidates, want[i].candidates);
        EXPECT_EQ(scores[i].student_logprobs, want[i].student_logprobs);
        EXPECT_EQ(scores[i].student_entropy, want[i].student_entropy);
        EXPECT_EQ(scores[i].teacher_logprobs, want[i].teacher_logprobs);
        EXPECT_EQ(scores[i].teacher_sampled_logprobs, want[i].teacher_sampled_logprobs);
        EXPECT_EQ(scores[i].overlap, want[i].overlap);
      }
      fewest = std::min(fewest, streamed.stream->counts().passes);
      most = std::max(most, streamed.stream->counts().passes);
    }
    EXPECT_EQ(fewest, 2u);  // one for each side
    EXPECT_EQ(most, 10u);   // five batches of at most eight tokens
  }
}

TEST(StreamedProgress, IsToldInsideAPass) {
  const test::TemporaryDirectory folder;
  test::write_tiny_model(folder / "model", test::tiny_config("Qwen3ForCausalLM", {{"vocab_size", "37"}}));
  const auto streamed =
      model::stream_weights(std::make_shared<const io::ModelDirectory>(folder / "model"), uint64_t{1} << 40);
  model::Workspace workspace;
  std::vector<double> done;
  (void)score_student(streamed, some_rollouts(), {}, workspace,
                      [&](double rollouts, uint64_t) { done.push_back(rollouts); });
  EXPECT_EQ(done, (std::vector<double>{0, 2, 6}));  // before each of two layers, and behind the head
}

TEST(ScoringProgress, MovesInsideOneResponseOfALargeModel) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 1);
  model::Weights large = parameters.weights();
  large.execution.sharing = model::Sharing::products;
  const auto rollouts = some_rollouts();
  const auto one = std::span(rollouts).subspan(2, 1);  // of five tokens
  model::Workspace workspace;
  std::vector<std::pair<double, uint64_t>> told;
  const auto tell = [&](double done, uint64_t tokens) { told.emplace_back(done, tokens); };
  auto scores = score_student(large, one, {}, workspace, tell);
  using Told = std::vector<std::pair<double, uint64_t>>;
  const Told expected = {{0, 0}, {1.0 / 3, 1}, {1, 5}};  // before each of two layers, and behind the head
  EXPECT_EQ(told, expected);
  told.clear();
  score_teacher(scores, large, one, {}, workspace, nullptr, tell);
  EXPECT_EQ(told, expected);
}

TEST(ShareOut, MakesTasksSmallerTowardsTheEnd) {
  const auto sizes = [](size_t count, size_t threads, int64_t max_tokens, int64_t each) {
    std::vector<size_t> result;
    size_t next = 0;
    for (const auto& [begin, end] : share_out(count, threads, max_tokens, [&](size_t) { return each; })) {
      EXPECT_EQ(begin, next);
      next = end;
      result.push_back(end - begin);
    }
    EXPECT_EQ(next, count);
    return result;
  };
  EXPECT_EQ(sizes(100, 2, 8192, 200),
            (std::vector<size_t>{10, 10, 10, 10, 10, 10, 10, 7, 5, 4, 3, 2, 2, 2, 2, 2, 1}));
  EXPECT_EQ(sizes(5, 2, 100, 200), (std::vector<size_t>{1, 1, 1, 1, 1})) << "above any limit";
  EXPECT_TRUE(sizes(0, 2, 8192, 200).empty());
}

TEST(CheckRollouts, NamesQueryAndSample) {
  const auto config = tiny_config(Architecture::qwen3);
  const auto message = [&](Rollout rollout) -> std::string {
    try {
      check_rollouts(std::span(&rollout, 1), config);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({.query_id = "q", .sample = 2, .prompt_ids = {1}}),
            "query q, sample 2: the response is empty; there is nothing to score");
  EXPECT_EQ(message({.query_id = "q", .response_ids = {1}}),
            "query q, sample 0: the prompt is empty; there is no state to supervise");
  EXPECT_NE(message({.query_id = "q", .prompt_ids = {1}, .response_ids = {37}})
                .find("id 37 is outside the vocabulary of 37"),
            std::string::npos);
  EXPECT_NE(message({.query_id = "q", .prompt_ids = {1}, .response_ids = std::vector<Token>(300, 1)})
                .find("301 tokens"),
            std::string::npos);
}

TEST(PredictingStates, WithTheHeadAreWhatScoringSees) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 3);
  const auto rollouts = some_rollouts();
  model::Workspace workspace;
  const model::Weights weights = parameters.weights();
  const auto scores = score_student(weights, rollouts, {}, workspace);
  std::vector<model::PromptedResponse> responses;
  std::vector<int32_t> sampled;
  std::vector<float> expected;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    responses.push_back({rollouts[i].prompt_ids, rollouts[i].response_ids});
    sampled.insert(sampled.end(), rollouts[i].response_ids.begin(), rollouts[i].response_ids.end());
    expected.insert(expected.end(), scores[i].sampled_logprobs.begin(), scores[i].sampled_logprobs.end());
  }
  std::vector<int64_t> begins(sampled.size() + 1);
  std::iota(begins.begin(), begins.end(), 0);
  const auto states = predicting_states(weights, responses, Precision::f32, workspace);
  const auto result = kernels::score_vocabulary(states, weights.head.stored, Precision::f32,
                                                {.given_begins = begins, .given_ids = sampled});
  EXPECT_EQ(result.given_logprobs, expected);
}

TEST(StatesBefore, AreRowsOfThePredictingStates) {
  const test::TemporaryDirectory folder;
  test::write_tiny_model(folder / "model", test::tiny_config("Qwen3ForCausalLM", {{"vocab_size", "37"}}));
  const auto directory = std::make_shared<const io::ModelDirectory>(folder / "model");
  const auto rollouts = some_rollouts();
  std::vector<model::PromptedResponse> responses;
  for (const Rollout& rollout : rollouts) responses.push_back({rollout.prompt_ids, rollout.response_ids});
  const std::vector<std::vector<uint32_t>> positions = {{1, 3}, {}, {0, 4}, {1}, {0}, {2}};
  const std::vector<size_t> rows = {1, 3, 5, 9, 11, 12, 15};  // responses of 4, 1, 5, 2, 1 and 3 tokens
  model::Workspace workspace;
  const model::Weights resident = model::map_weights(directory);
  const auto all = predicting_states(resident, responses, Precision::f32, workspace);
  for (const model::Weights& weights : {resident, model::stream_weights(directory, 0)}) {
    const auto some = states_before(weights, responses, positions, Precision::f32, workspace, 8);
    ASSERT_EQ(some.size(), rows.size() * 16);
    for (size_t r = 0; r < rows.size(); ++r)
      EXPECT_TRUE(std::ranges::equal(some.span().subspan(r * 16, 16), all.span().subspan(rows[r] * 16, 16)))
          << r;
  }
}

}  // namespace
}  // namespace ropd::distill
