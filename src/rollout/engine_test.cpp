#include "rollout/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/threads.h"
#include "kernels/vocab_head.h"
#include "kernels/vocab_rows.h"
#include "model/forward.h"
#include "support/error_of.h"
#include "support/naive_model.h"
#include "support/set_threads.h"

namespace ropd::rollout {
namespace {

using model::Precision;
using test::error_of;
using test::random_parameters;

constexpr Token kEos = 5, kOtherEos = 11;

// Prompts of 1 to 75 tokens, so many samples each.
std::vector<Request> make_requests(uint32_t samples = 3) {
  std::vector<Request> requests;
  const std::vector<size_t> lengths = {1, 2, 31, 32, 33, 64, 75, 12};
  for (size_t q = 0; q < lengths.size(); ++q) {
    std::vector<Token> prompt;
    for (size_t i = 0; i < lengths[q]; ++i) prompt.push_back(static_cast<Token>((i * 13 + q * 5) % 37));
    const auto shared = std::make_shared<const std::vector<Token>>(prompt);
    for (uint32_t s = 0; s < samples; ++s)
      requests.push_back(
          {"query " + std::to_string(q), s, shared, RandomStream(42, "test"), "answer " + std::to_string(q)});
  }
  return requests;
}

EngineConfig engine_config() {
  EngineConfig config;
  config.max_response_tokens = 60;
  config.eos_ids = {kEos, kOtherEos};
  config.with_logprobs = true;
  config.memory_bytes = 64 << 20;
  return config;
}

using Result = std::map<std::pair<std::string, uint32_t>, Rollout>;

Result run(Engine& engine, const std::vector<Request>& requests, RunSummary* summary = nullptr) {
  set_log_level(LogLevel::warnings);
  Result result;
  const RunSummary found = engine.run(
      requests, {.on_done = [&](size_t index, Rollout&& rollout) {
        EXPECT_EQ(rollout.query_id, requests[index].query_id);
        EXPECT_TRUE(result.emplace(std::pair(rollout.query_id, rollout.sample), std::move(rollout)).second);
      }});
  EXPECT_EQ(found.num_done, requests.size());
  if (summary) *summary = found;
  return result;
}

void expect_same(const Result& a, const Result& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (const auto& [key, rollout] : a) {
    const Rollout& other = b.at(key);
    EXPECT_EQ(rollout.response_ids, other.response_ids) << what << ", " << key.first;
    EXPECT_EQ(rollout.sampled_logprobs, other.sampled_logprobs) << what << ", " << key.first;
    EXPECT_EQ(rollout.finish, other.finish) << what;
  }
}

class EngineOf : public testing::TestWithParam<std::tuple<Architecture, Precision>> {
 protected:
  EngineOf() : parameters_(random_parameters(test::tiny_config(std::get<0>(GetParam()), false), 3, 0.5f)) {}
  const Precision precision_ = std::get<1>(GetParam());
  const model::Parameters parameters_;
  const std::vector<Request> requests_ = make_requests();
  Result run_with(const EngineConfig& config, RunSummary* summary = nullptr) {
    Engine engine(parameters_.weights(), precision_, config);
    return run(engine, requests_, summary);
  }
};
INSTANTIATE_TEST_SUITE_P(
    Models, EngineOf,
    testing::Combine(testing::Values(Architecture::qwen3, Architecture::qwen2, Architecture::qwen3_moe),
                     testing::Values(Precision::f32, Precision::bf16, Precision::bf16_tiles)));

TEST_P(EngineOf, GivesTheSameResponsesHoweverTheyAreBatched) {
  const Result expected = run_with(engine_config());
  for (const int64_t max_batch : {1, 2, 7}) {
    EngineConfig config = engine_config();
    config.max_batch = max_batch;
    expect_same(expected, run_with(config), "batch of " + std::to_string(max_batch));
  }
  for (const int64_t chunk : {1, 5, 33}) {
    EngineConfig config = engine_config();
    config.prefill_chunk_tokens = chunk;
    expect_same(expected, run_with(config), "chunks of " + std::to_string(chunk));
  }
  EngineConfig large_pages = engine_config();
  large_pages.page_tokens = 64;
  expect_same(expected, run_with(large_pages), "pages of 64");
  const test::SetThreads one(1);
  expect_same(expected, run_with(engine_config()), "one thread");
}

TEST_P(EngineOf, GivesTheSameResponsesInAnyOrderOfRequests) {
  Engine engine(parameters_.weights(), precision_, engine_config());
  const Result expected = run(engine, requests_);
  std::vector<Request> shuffled;
  for (const uint32_t i : random_permutation(static_cast<uint32_t>(requests_.size()), 8, Purpose::test))
    shuffled.push_back(requests_[i]);
  expect_same(expected, run(engine, shuffled), "shuffled");
  for (Request& request : shuffled)
    request.prompt = std::make_shared<const std::vector<Token>>(*request.prompt);
  expect_same(expected, run(engine, shuffled), "nothing shared");
  expect_same({{{"query 6", 1}, expected.at({"query 6", 1})}}, run(engine, {requests_[19]}), "alone");
}

TEST_P(EngineOf, GivesTheSameResponsesUnderPreemption) {
  EngineConfig long_responses = engine_config();
  long_responses.eos_ids = {};
  long_responses.max_response_tokens = 90;
  const Result expected = run_with(long_responses);
  for (const int64_t page_tokens : {32, 64}) {
    EngineConfig config = long_responses;
    config.page_tokens = page_tokens;
    config.memory_bytes = (page_tokens == 32 ? 9 : 5) *
                          model::KvCache::page_bytes(parameters_.config(), precision_, page_tokens);
    RunSummary summary;
    expect_same(expected, run_with(config, &summary), "preempted");
    EXPECT_GT(summary.num_preemptions, 0u) << "or this test shows nothing";
  }
}

// Responses that repeat themselves: nearly greedy ones of a small model.
TEST_P(EngineOf, GivesTheSameResponsesWithGuesses) {
  for (const bool end : {true, false}) {
    EngineConfig config = engine_config();
    config.sampling.temperature = 0.3;
    config.max_response_tokens = 120;
    if (!end) config.eos_ids = {};
    RunSummary summary;
    const Result expected = run_with(config, &summary);
    EXPECT_EQ(summary.num_guesses, 0u) << "a small model makes none by itself";
    for (const int64_t rows : {9, 200}) {
      config.rows_with_guesses = rows;
      config.max_batch = rows < 200 ? 3 : 64;
      config.memory_bytes = 64 << 20;
      expect_same(expected, run_with(config, &summary), std::to_string(rows) + " rows");
      EXPECT_GT(summary.num_right_guesses, 0u) << "or this test shows nothing";
      EXPECT_LT(summary.num_right_guesses, summary.num_guesses);
      config.memory_bytes = 9 * model::KvCache::page_bytes(parameters_.config(), precision_, 32);
      expect_same(expected, run_with(config, &summary), "few pages");
      EXPECT_GT(summary.num_right_guesses, 0u);
      // Three sequences have one worker, whose order does not depend on the machine.
      EXPECT_TRUE(end || rows > 9 || summary.num_preemptions > 0);
    }
  }
}

// The log-probabilities that scoring computes over the finished sequences, by the packed forward pass.
std::vector<float> scored(const model::Weights& weights, Precision precision, const Rollout& rollout,
                          float temperature) {
  model::PackedBatch batch;
  batch.append(rollout.prompt_ids, rollout.response_ids);
  model::Workspace workspace;
  Buffer hidden(batch.tokens.size() * static_cast<size_t>(weights.config.hidden_size));
  model::forward(hidden, weights, batch, precision, workspace);
  const size_t width = static_cast<size_t>(weights.config.hidden_size), rows = rollout.response_ids.size();
  std::vector<int64_t> begins;
  for (size_t i = 0; i <= rows; ++i) begins.push_back(static_cast<int64_t>(i));
  return kernels::score_vocabulary(
             std::as_const(hidden).span().subspan((rollout.prompt_ids.size() - 1) * width, rows * width),
             weights.head.stored, precision,
             {.temperature = temperature, .given_begins = begins, .given_ids = rollout.response_ids})
      .given_logprobs;
}

TEST_P(EngineOf, LogprobsEqualScoringBitForBit) {
  for (const double temperature : {1.0, 0.8}) {
    EngineConfig config = engine_config();
    config.sampling.temperature = temperature;
    for (const auto& [key, rollout] : run_with(config))
      EXPECT_EQ(rollout.sampled_logprobs,
                scored(parameters_.weights(), precision_, rollout, static_cast<float>(temperature)))
          << key.first;
  }
}

TEST_P(EngineOf, GreedyFollowsTheLargestLogitOfTheForwardPass) {
  EngineConfig config = engine_config();
  config.sampling.greedy = true;
  config.max_response_tokens = 5;
  const test::NaiveModel naive(parameters_);
  for (const auto& [key, rollout] : run_with(config)) {
    auto tokens = rollout.prompt_ids;
    tokens.insert(tokens.end(), rollout.response_ids.begin(), rollout.response_ids.end());
    const auto logits = naive.logits(tokens);
    for (size_t i = 0; i < rollout.response_ids.size(); ++i) {
      const auto& row = logits[rollout.prompt_ids.size() - 1 + i];
      const double best = *std::max_element(row.begin(), row.end());
      EXPECT_NEAR(row[static_cast<size_t>(rollout.response_ids[i])], best,
                  precision_ == Precision::f32 ? 1e-3 : 0.5);
    }
  }
}

class EngineTest : public testing::Test {
 protected:
  model::Parameters parameters_ = random_parameters(test::tiny_config(Architecture::qwen3), 3, 0.5f);
  const std::vector<Request> requests_ = make_requests();
};

TEST_F(EngineTest, EndsAtAnyEosOrTheLimitAndSaysWhich) {
  EngineConfig config = engine_config();
  config.max_response_tokens = 15;
  Engine engine(parameters_.weights(), Precision::f32, config);
  size_t eos = 0, limit = 0;
  for (const auto& [key, rollout] : run(engine, requests_)) {
    ASSERT_FALSE(rollout.response_ids.empty());
    const auto is_eos = [](Token t) { return t == kEos || t == kOtherEos; };
    EXPECT_EQ(std::count_if(rollout.response_ids.begin(), rollout.response_ids.end() - 1, is_eos), 0);
    EXPECT_EQ(is_eos(rollout.response_ids.back()), rollout.finish == Finish::eos);
    EXPECT_TRUE(rollout.finish == Finish::eos || rollout.response_ids.size() == 15);
    ++(rollout.finish == Finish::eos ? eos : limit);
    EXPECT_EQ(rollout.sampled_logprobs.size(), rollout.response_ids.size());
  }
  EXPECT_GT(eos, 0u);
  EXPECT_GT(limit, 0u);
}

TEST_F(EngineTest, FillsTheRecord) {
  EngineConfig config = engine_config();
  config.with_logprobs = false;
  Engine engine(parameters_.weights(), Precision::f32, config, /*policy_step=*/12);
  const Result result = run(engine, requests_);
  const Rollout& rollout = result.at({"query 4", 2});
  EXPECT_EQ(rollout.prompt_ids, *requests_[14].prompt);
  EXPECT_EQ(rollout.policy_step, 12u);
  EXPECT_EQ(rollout.seed, 42u);
  EXPECT_EQ(rollout.answer, "answer 4");
  EXPECT_TRUE(rollout.sampled_logprobs.empty());
}

TEST_F(EngineTest, SamplesOfAQueryDiffer) {
  Engine engine(parameters_.weights(), Precision::f32, engine_config());
  const Result result = run(engine, requests_);
  EXPECT_NE(result.at({"query 1", 0}).response_ids, result.at({"query 1", 1}).response_ids);
}

TEST_F(EngineTest, NewWeightsAreUsedAndCarried) {
  const auto other = random_parameters(test::tiny_config(Architecture::qwen3), 4, 0.5f);
  Engine engine(parameters_.weights(), Precision::bf16, engine_config());
  Engine fresh(other.weights(), Precision::bf16, engine_config());
  const Result before = run(engine, requests_);
  engine.replace_weights(other.weights(), 3);
  const Result after = run(engine, requests_);
  expect_same(after, run(fresh, requests_), "replaced weights");
  EXPECT_EQ(after.begin()->second.policy_step, 3u);
  EXPECT_EQ(before.begin()->second.policy_step, 0u);
}

TEST_F(EngineTest, ReportsEveryTokenInOrder) {
  Engine engine(parameters_.weights(), Precision::f32, engine_config());
  std::map<size_t, std::vector<Token>> live;
  engine.run(requests_, {.on_done = [&](size_t index,
                                        Rollout&& rollout) { EXPECT_EQ(live[index], rollout.response_ids); },
                         .on_token = [&](size_t index, Token token) { live[index].push_back(token); }});
  EXPECT_EQ(live.size(), requests_.size());
}

TEST_F(EngineTest, TakesScoresWhileItSamples) {
  Engine engine(parameters_.weights(), Precision::f32, engine_config());
  std::optional<Scores> last;
  size_t count = 0;
  RunHooks hooks;
  hooks.scores_top_k = 3;
  hooks.on_scores = [&](size_t index, Scores&& scores) {
    EXPECT_EQ(scores.query_id, requests_[index].query_id);
    last = std::move(scores);
  };
  hooks.on_done = [&](size_t, Rollout&& rollout) {
    ASSERT_TRUE(last) << "scores come before their response";
    EXPECT_EQ(last->sample, rollout.sample);
    EXPECT_EQ(last->sampled_logprobs, rollout.sampled_logprobs);
    EXPECT_EQ(last->candidates.size(), 3 * rollout.response_ids.size());
    last.reset();
    ++count;
  };
  engine.run(requests_, hooks);
  EXPECT_EQ(count, requests_.size());
}

TEST_F(EngineTest, TakesTheSameScoresAndTokensWithGuesses) {
  const auto scores_with = [&](int64_t rows_with_guesses) {
    EngineConfig config = engine_config();
    config.sampling.temperature = 0.3;
    config.rows_with_guesses = rows_with_guesses;
    Engine engine(parameters_.weights(), Precision::f32, config);
    std::map<size_t,
             std::tuple<std::vector<Token>, std::vector<float>, std::vector<float>, std::vector<Token>>>
        found;
    RunHooks hooks;
    hooks.scores_top_k = 3;
    hooks.on_token = [&](size_t index, Token token) { std::get<3>(found[index]).push_back(token); };
    hooks.on_scores = [&](size_t index, Scores&& scores) {
      std::tie(std::get<0>(found[index]), std::get<1>(found[index]), std::get<2>(found[index])) =
          std::tie(scores.candidates, scores.student_logprobs, scores.student_entropy);
    };
    hooks.on_done = [](size_t, Rollout&&) {};
    const RunSummary summary = engine.run(requests_, hooks);
    EXPECT_EQ(summary.num_right_guesses > 0, rows_with_guesses > 0);
    return found;
  };
  EXPECT_EQ(scores_with(0), scores_with(100));
}

// The end of a turn stands in prompts, so that it can be guessed; what comes behind it is no part of the response.
TEST_F(EngineTest, AGuessedEndEndsTheResponse) {
  EngineConfig config = engine_config();
  config.sampling.greedy = true;
  config.eos_ids = {};
  config.max_response_tokens = 180;
  Engine endless(parameters_.weights(), Precision::f32, config);
  int num_guessed_ends = 0;
  for (const auto& [key, whole] : run(endless, requests_)) {
    if (key.second != 0) continue;
    // Behind its beginning a text goes on as it did, some of them in circles; a token of those is the end.
    const size_t num_given = 120, num_left = whole.response_ids.size() - num_given;
    std::vector<Token> prompt = whole.prompt_ids;
    prompt.insert(prompt.end(), whole.response_ids.begin(), whole.response_ids.begin() + num_given);
    const std::vector<Request> again = {
        {"again", 0, std::make_shared<const std::vector<Token>>(prompt), RandomStream(42, "test"), ""}};
    for (size_t i = 0; i < num_left; i += 5) {
      config.eos_ids = {whole.response_ids[num_given + i]};
      config.rows_with_guesses = 0;
      Engine without(parameters_.weights(), Precision::f32, config);
      config.rows_with_guesses = 300;  // also behind the prompt
      Engine with(parameters_.weights(), Precision::f32, config);
      RunSummary expected, summary;
      expect_same(run(without, again, &expected), run(with, again, &summary), "end " + std::to_string(i));
      EXPECT_EQ(summary.num_tokens, expected.num_tokens) << "nothing is drawn behind the end";
      const std::vector<Token> guesses = Repeats().guess(prompt, 2);
      num_guessed_ends += i == 0 && guesses.size() == 2 && guesses[0] == config.eos_ids[0];
    }
  }
  EXPECT_GT(num_guessed_ends, 0) << "or this test shows nothing";
}

TEST(BatchInCache, IsSmallerForLongerResponsesAndBounded) {
  EXPECT_EQ(batch_in_cache(1.0, 1.0), 48);
  EXPECT_EQ(batch_in_cache(100.0, 1024.0), 30);  // 100 KiB each, in whole tiles
  EXPECT_EQ(batch_in_cache(200.0, 1024.0), 12);
  EXPECT_EQ(batch_in_cache(1e9, 1e9), 12);
}

TEST_F(EngineTest, StopsBetweenStepsWhenAsked) {
  Engine engine(parameters_.weights(), Precision::f32, engine_config());
  const RunSummary summary = engine.run(requests_, {.on_done = [](size_t, Rollout&&) {},
                                                    .on_step =
                                                        [](const RunSummary& so_far) {
                                                          if (so_far.num_steps == 3) request_stop();
                                                        }});
  clear_stop_request();
  EXPECT_TRUE(summary.was_stopped);
  EXPECT_GE(summary.num_steps, 3u);
  EXPECT_LT(summary.num_steps, 3u + static_cast<uint64_t>(num_threads()))
      << "only steps that had begun are finished";
  EXPECT_LT(summary.num_done, requests_.size());
}

TEST_F(EngineTest, ThreadsWithSequencesOfTheirOwnGiveTheSameResponses) {
  EngineConfig config = engine_config();
  config.eos_ids = {};
  config.memory_bytes = 9 * model::KvCache::page_bytes(parameters_.config(), Precision::f32, 32);
  const auto run_on = [&](int threads, RunSummary* summary = nullptr) {
    const test::SetThreads set(threads);
    Engine engine(parameters_.weights(), Precision::f32, config);
    return run(engine, requests_, summary);
  };
  RunSummary alone;  // how often several threads preempt each other depends on the system's scheduling
  const Result expected = run_on(1, &alone);
  EXPECT_GT(alone.num_preemptions, 0u) << "or little is shown";
  for (const int threads : {2, 3, 6})
    expect_same(expected, run_on(threads), std::to_string(threads) + " threads");
}

// As servers have them, on however few cores there are here. With its steps shared the model is so wide that
// products are worth more threads.
TEST_F(EngineTest, ManyThreadsGiveTheResponsesOfOne) {
  ModelConfig shape = test::tiny_config(Architecture::qwen3);
  shape.hidden_size = 64;
  shape.intermediate_size = 192;
  shape.vocab_size = 1500;
  const auto parameters = random_parameters(shape, 3, 0.2f);
  const auto requests = make_requests(17);  // 136: thirty-four threads have four each
  EngineConfig config = engine_config();
  config.max_response_tokens = 12;
  for (const auto sharing : {model::Sharing::sequences, model::Sharing::products}) {
    model::Weights weights = parameters.weights();
    weights.execution.sharing = sharing;
    const auto run_on = [&](int threads) {
      const test::SetThreads set(threads);
      Engine engine(weights, Precision::bf16, config);
      return run(engine, requests);
    };
    const Result expected = run_on(1);
    for (const int threads : {8, 24, 64})
      expect_same(expected, run_on(threads), std::to_string(threads) + " threads");
  }
}

// Other programs come and go: all threads in one step, or each in steps of its own; with few sequences one alone.
TEST_F(EngineTest, ACrowdedMachineGivesTheSameResponses) {
  model::Weights weights = parameters_.weights();
  weights.execution.sharing = model::Sharing::products;
  EngineConfig config = engine_config();
  config.eos_ids = {};
  for (const int threads : {2, 3}) {
    const test::SetThreads set(threads);
    config.max_batch = 8 * threads;
    const auto run_with = [&](std::vector<double> shares, RunSummary& summary) {
      size_t asked = 0;
      config.lost_share = [&] { return shares[asked++ % shares.size()]; };
      Engine engine(weights, Precision::f32, config);
      const Result result = run(engine, requests_, &summary);
      EXPECT_GT(asked, 0u);
      return result;
    };
    RunSummary together, apart;
    const Result expected = run_with({0}, together);
    expect_same(expected, run_with({1}, apart), "crowded");
    EXPECT_GT(apart.num_steps, together.num_steps) << "steps of a share of the sequences";
    expect_same(expected, run_with({0, 0.5, 0.2}, apart), "now and then");
    config.max_batch = 8 * (threads - 1);  // beside busy programs one thread has nothing to do
    expect_same(expected, run_with({1}, apart), "crowded, few sequences");
  }
}

TEST_F(EngineTest, AHookThatThrowsEndsTheRunOfAllThreads) {
  const test::SetThreads three(3);
  Engine engine(parameters_.weights(), Precision::f32, engine_config());
  const Result expected = run(engine, requests_);
  for (const size_t fails_at : {1, 2, 10, 24}) {
    size_t num_done = 0;
    EXPECT_THROW(engine.run(requests_, {.on_done =
                                            [&](size_t, Rollout&&) {
                                              if (++num_done == fails_at) fail("the disk is full");
                                            }}),
                 Error);
    EXPECT_EQ(num_done, fails_at) << "nothing more is told";
  }
  expect_same(expected, run(engine, requests_), "after failures");
}

TEST_F(EngineTest, RefusesRequestsThatCannotRun) {
  Engine engine(parameters_.weights(), Precision::f32, engine_config());
  const auto run_prompt = [&](std::vector<Token> prompt) {
    return error_of([&] {
      engine.run(std::vector<Request>{{"q7", 0, std::make_shared<const std::vector<Token>>(std::move(prompt)),
                                       RandomStream(1, "test"), ""}},
                 {.on_done = [](size_t, Rollout&&) {}});
    });
  };
  EXPECT_THAT(run_prompt({}), testing::HasSubstr("q7, sample 0: the prompt is empty"));
  EXPECT_THAT(run_prompt({1, 37}),
              testing::HasSubstr("position 1 holds id 37, outside the vocabulary of 37"));
  EXPECT_THAT(run_prompt({-1}), testing::HasSubstr("holds id -1"));
  EXPECT_THAT(run_prompt(std::vector<Token>(256, 1)), testing::HasSubstr("256 tokens, the model's context"));
  EXPECT_EQ(run_prompt(std::vector<Token>(255, 1)), "no error");
}

TEST_F(EngineTest, RefusesAMemoryBudgetBelowOneResponse) {
  EngineConfig config = engine_config();
  config.memory_bytes = 3 * model::KvCache::page_bytes(parameters_.config(), Precision::f32, 32);
  Engine engine(parameters_.weights(), Precision::f32, config);
  EXPECT_THAT(error_of([&] { engine.run(requests_, {.on_done = [](size_t, Rollout&&) {}}); }),
              testing::HasSubstr("one response of up to 160 tokens needs"));
}

TEST_F(EngineTest, NamesQueryAndPositionOfANaN) {
  for (float& value : parameters_.values().subspan(5 * 20, 20))
    value = std::nanf("");  // the embedding of token 5
  Engine engine(parameters_.weights(), Precision::f32, engine_config());
  const std::vector<Request> requests = {
      {"sick", 2, std::make_shared<const std::vector<Token>>(std::vector<Token>{1, 5}),
       RandomStream(1, "test"), ""}};
  EXPECT_THAT(error_of([&] { engine.run(requests, {.on_done = [](size_t, Rollout&&) {}}); }),
              testing::HasSubstr("query sick, sample 2, response position 0: the logits hold NaN"));
}

TEST_F(EngineTest, SummaryCountsWhatWasDone) {
  Engine engine(parameters_.weights(), Precision::f32, engine_config());
  RunSummary summary;
  uint64_t tokens = 0, at_limit = 0;
  for (const auto& [key, rollout] : run(engine, requests_, &summary)) {
    tokens += rollout.response_ids.size();
    at_limit += rollout.finish == Finish::length;
  }
  EXPECT_EQ(summary.num_done_tokens, tokens);
  EXPECT_EQ(summary.num_tokens, tokens);
  EXPECT_EQ(summary.num_at_limit, at_limit);
  EXPECT_THAT(summary.note(), testing::HasSubstr("at the limit"));
}

TEST_F(EngineTest, WithoutABudgetItTakesWhatIsFree) {
  EngineConfig config = engine_config();
  config.memory_bytes = 0;
  Engine engine(parameters_.weights(), Precision::f32, config);
  RunSummary summary;
  run(engine, requests_, &summary);
  EXPECT_GT(summary.cache_bytes, 0u);
}

}  // namespace
}  // namespace ropd::rollout
