#include "rollout/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace ropd::rollout {
namespace {

ModelConfig small() {
  ModelConfig config;
  config.num_layers = 1;
  config.num_kv_heads = 1;
  config.head_dim = 2;
  return config;
}

std::vector<Request> make_requests(const std::vector<std::pair<size_t, uint32_t>>& prompts_and_samples) {
  std::vector<Request> requests;
  for (size_t q = 0; q < prompts_and_samples.size(); ++q) {
    const auto prompt = std::make_shared<const std::vector<Token>>(prompts_and_samples[q].first, 1);
    for (uint32_t s = 0; s < prompts_and_samples[q].second; ++s)
      requests.push_back({"q" + std::to_string(q), s, prompt, RandomStream(1, "test"), ""});
  }
  return requests;
}

// The positions that a step runs, guesses included.
int64_t end_of(const Work& work) {
  return work.sequence->num_cached + work.num_rows + static_cast<int64_t>(work.guesses.size());
}

// A model that draws token 2 and ends each response after `length(request)` tokens; counts what was run.
struct Play {
  std::map<size_t, int64_t> response_lengths;
  int64_t rows = 0, guesses = 0, steps = 0, most_running = 0, most_rows = 0, most_in_a_step = 0;
};

// Steps of several workers overlap; chance decides which one ends next.
template <class Length>
Play play(model::KvCache& cache, Scheduler& scheduler, Length length, size_t workers = 1,
          uint32_t chance = 1) {
  Play result;
  std::vector<std::vector<Work>> steps(workers);
  std::set<const Sequence*> in_steps;
  const auto begin_step = [&](std::vector<Work>& step) {
    step = scheduler.plan(static_cast<int64_t>(workers));
    if (step.empty()) {
      EXPECT_FALSE(in_steps.empty()) << "nothing to wait for";
      return;
    }
    int64_t rows = 0;
    for (const Work& work : step) {
      EXPECT_TRUE(in_steps.insert(work.sequence).second) << "in two steps at a time";
      EXPECT_EQ(work.sequence->pages.pages_missing(end_of(work)), 0);
      EXPECT_LT(end_of(work), work.sequence->max_tokens) << "the last token is not run";
      EXPECT_GT(work.num_rows, 0);
      EXPECT_TRUE(work.guesses.empty() || work.reaches_end());
      const int64_t guesses = static_cast<int64_t>(work.guesses.size());
      rows += work.num_rows + guesses;
      result.guesses += guesses;
    }
    ++result.steps;
    result.rows += rows;
    result.most_rows = std::max(result.most_rows, rows);
    result.most_in_a_step = std::max(result.most_in_a_step, static_cast<int64_t>(step.size()));
  };
  const auto end_step = [&](std::vector<Work>& step) {
    for (const Work& work : step) {
      Sequence& sequence = *work.sequence;
      EXPECT_EQ(in_steps.erase(&sequence), 1u);
      EXPECT_EQ(sequence.pages.pages_missing(end_of(work)), 0) << "preempted meanwhile";
      if (!work.reaches_end()) continue;
      for (size_t row = 0; row <= work.guesses.size() && !sequence.is_finished; ++row) {
        sequence.tokens.push_back(2);
        const int64_t response = static_cast<int64_t>(sequence.tokens.size()) - sequence.prompt_tokens;
        if (response == length(sequence.request) ||
            static_cast<int64_t>(sequence.tokens.size()) == sequence.max_tokens) {
          sequence.is_finished = true;
          EXPECT_TRUE(result.response_lengths.emplace(sequence.request, response).second) << "done twice";
        }
        if (row < work.guesses.size() && work.guesses[row] != 2) break;
      }
    }
    // complete() books the rows of the plan: a token appended above is still to be run.
    scheduler.complete(step);
    step.clear();
    result.most_running = std::max(result.most_running, scheduler.num_running());
  };
  for (int64_t turn = 0; !scheduler.is_done(); ++turn) {
    chance = chance * 1664525u + 1013904223u;
    std::vector<Work>& step = steps[(chance >> 16) % workers];
    if (!step.empty()) end_step(step);
    if (!scheduler.is_done()) begin_step(step);
    if (turn > 100000) {
      ADD_FAILURE() << "no progress";
      return result;
    }
  }
  EXPECT_EQ(cache.free_pages(), cache.num_pages()) << "pages were lost";
  return result;
}

SchedulerConfig config(int64_t max_batch = 64, int64_t chunk = 256, int64_t rows_with_guesses = 0) {
  return {.max_batch = max_batch,
          .prefill_chunk_tokens = chunk,
          .max_response_tokens = 100,
          .max_positions = 1000,
          .rows_with_guesses = rows_with_guesses};
}

TEST(Scheduler, RunsEveryRequestToItsEnd) {
  const auto requests = make_requests({{10, 3}, {40, 4}, {1, 5}, {33, 1}});
  model::KvCache cache(small(), model::Precision::f32, 100, 32);
  Scheduler scheduler(cache, requests, config());
  scheduler.enlist_all();
  const auto length = [](size_t request) { return static_cast<int64_t>(request * 7 % 50 + 1); };
  const Play result = play(cache, scheduler, length);
  ASSERT_EQ(result.response_lengths.size(), requests.size());
  for (const auto& [request, response] : result.response_lengths) EXPECT_EQ(response, length(request));
  EXPECT_EQ(scheduler.num_preemptions(), 0u);
}

TEST(Scheduler, PrefillsASharedPromptOnce) {
  const auto requests = make_requests({{90, 10}});
  model::KvCache cache(small(), model::Precision::f32, 200, 32);
  Scheduler scheduler(cache, requests, config());
  scheduler.enlist_all();
  const Play result = play(cache, scheduler, [](size_t) { return 5; });
  // 89 prompt tokens once, then for each sample the last prompt token and four drawn ones.
  EXPECT_EQ(result.rows, 89 + 10 * 5);
}

TEST(Scheduler, KeepsThePromptForSamplesThatStartLater) {
  const auto requests = make_requests({{90, 6}});
  model::KvCache cache(small(), model::Precision::f32, 200, 32);
  Scheduler scheduler(cache, requests, config(/*max_batch=*/1));
  scheduler.enlist_all();
  const Play result = play(cache, scheduler, [](size_t) { return 5; });
  EXPECT_EQ(result.rows, 89 + 6 * 5);
  EXPECT_EQ(result.most_running, 1);
}

TEST(Scheduler, SharesTheMemoryOfAPrompt) {
  // Ten samples of a 900-token prompt: 29 pages each on their own, 38 and a bit together.
  const auto requests = make_requests({{900, 10}});
  model::KvCache cache(small(), model::Precision::f32, 60, 32);
  Scheduler scheduler(cache, requests, config());
  scheduler.enlist_all();
  const Play result = play(cache, scheduler, [](size_t) { return 20; });
  EXPECT_GE(result.most_running, 9);
  EXPECT_EQ(scheduler.num_preemptions(), 0u);
}

TEST(Scheduler, RunsPromptsInChunksNextToDecoding) {
  auto requests = make_requests({{5, 2}, {500, 1}});
  model::KvCache cache(small(), model::Precision::f32, 200, 32);
  Scheduler scheduler(cache, requests, config(64, /*chunk=*/40));
  scheduler.enlist_all();
  const Play result = play(cache, scheduler, [](size_t) { return 60; });
  EXPECT_LE(result.most_rows, 40 + 2);
  EXPECT_LE(result.steps, 2 + 500 / 40 + 1 + 60)
      << "the short ones decode while the long prompt is prefilled";
}

TEST(Scheduler, PreemptsWhenPagesRunOutAndLosesNothing) {
  const auto requests = make_requests({{20, 2}, {30, 2}, {64, 3}, {1, 1}});
  for (const int64_t num_pages : {6, 7, 9, 13}) {  // the longest needs 6 pages alone
    model::KvCache cache(small(), model::Precision::f32, num_pages, 32);
    Scheduler scheduler(cache, requests, config());
    scheduler.enlist_all();
    const Play result = play(cache, scheduler, [](size_t request) { return request % 2 ? 100 : 77; });
    EXPECT_EQ(result.response_lengths.size(), requests.size()) << num_pages;
    for (const auto& [request, response] : result.response_lengths)
      EXPECT_EQ(response, request % 2 ? 100 : 77) << num_pages;
  }
  model::KvCache cache(small(), model::Precision::f32, 9, 32);
  Scheduler scheduler(cache, requests, config());
  scheduler.enlist_all();
  play(cache, scheduler, [](size_t) { return 100; });
  EXPECT_GT(scheduler.num_preemptions(), 0u) << "or this test shows nothing";
}

TEST(Scheduler, RightGuessesSaveStepsAndWrongOnesLoseNothing) {
  const auto requests = make_requests({{20, 1}, {33, 1}});
  const auto play_with = [&](int64_t rows_with_guesses) {
    model::KvCache cache(small(), model::Precision::f32, 100, 32);
    Scheduler scheduler(cache, requests, config(64, 256, rows_with_guesses));
    scheduler.enlist_all();
    const Play result = play(cache, scheduler, [](size_t request) { return request ? 100 : 77; });
    EXPECT_EQ(result.response_lengths, (std::map<size_t, int64_t>{{0, 77}, {1, 100}}));
    return result;
  };
  const Play none = play_with(0), some = play_with(8);
  EXPECT_EQ(none.guesses, 0);
  EXPECT_EQ(none.steps, 100);
  EXPECT_LT(some.steps, 35) << "eight rows for two, then for one sequence";
  EXPECT_LE(some.most_rows, 20 + 33 + 6) << "prompts, and up to eight rows";
}

TEST(Scheduler, GuessesWithFewPagesLoseNothing) {
  const auto requests = make_requests({{20, 2}, {30, 2}, {64, 3}, {1, 1}});
  for (const int64_t num_pages : {6, 7, 9, 13})  // the longest needs 6 pages alone
    for (const size_t workers : {1, 3}) {
      model::KvCache cache(small(), model::Precision::f32, num_pages, 32);
      Scheduler scheduler(cache, requests, config(64, 256, /*rows_with_guesses=*/40));
      scheduler.enlist_all();
      const Play result = play(
          cache, scheduler, [](size_t request) { return request % 2 ? 100 : 77; }, workers);
      EXPECT_GT(result.guesses, 0) << num_pages;
      EXPECT_EQ(result.response_lengths.size(), requests.size()) << num_pages;
      for (const auto& [request, response] : result.response_lengths)
        EXPECT_EQ(response, request % 2 ? 100 : 77) << num_pages;
    }
}

// The older one could guess into the last page, which the younger one needs for the token that it has.
TEST(Scheduler, NobodyGivesUpPagesForAGuess) {
  const auto requests = make_requests({{60, 1}, {63, 1}});
  model::KvCache cache(small(), model::Precision::f32, 5, 32);
  Scheduler scheduler(cache, requests, config(2, 256, 40));
  scheduler.enlist_all();
  for (const size_t guesses_of_the_older : {0, 3, 2}) {  // prompts alone; then as many as fit its two pages
    const std::vector<Work> step = scheduler.plan();
    ASSERT_EQ(step.size(), 2u);
    EXPECT_EQ(step[0].guesses.size(), guesses_of_the_older);
    for (const Work& work : step) work.sequence->tokens.push_back(1);
    scheduler.complete(step);
  }
  EXPECT_EQ(scheduler.num_preemptions(), 0u);
}

TEST(Scheduler, GuessesCountTheRowsOfPrompts) {
  const auto requests = make_requests({{20, 1}, {40, 1}});
  model::KvCache cache(small(), model::Precision::f32, 100, 32);
  Scheduler scheduler(cache, requests, config(64, /*chunk=*/20, /*rows_with_guesses=*/24));
  scheduler.enlist_all();
  const std::vector<Work> step = scheduler.plan();  // 20 rows of the first prompt
  ASSERT_EQ(step.size(), 1u);
  EXPECT_EQ(step[0].guesses.size(), 4u);
}

TEST(Scheduler, SharesSequencesOutToWorkers) {
  const auto requests = make_requests({{3, 40}});
  model::KvCache cache(small(), model::Precision::f32, 400, 32);
  Scheduler scheduler(cache, requests, config());
  scheduler.enlist_all();
  const Play result = play(
      cache, scheduler, [](size_t) { return 9; }, /*workers=*/4);
  EXPECT_EQ(result.most_in_a_step, 10);
  EXPECT_EQ(result.response_lengths.size(), requests.size());
}

TEST(Scheduler, PreemptsNothingThatIsInAStep) {
  const auto requests = make_requests({{20, 2}, {30, 2}, {64, 3}, {1, 1}});
  uint64_t preemptions = 0;
  for (const int64_t num_pages : {6, 7, 9, 13})  // the longest needs 6 pages alone
    for (const size_t workers : {2, 3})
      for (uint32_t chance = 0; chance < 20; ++chance) {
        model::KvCache cache(small(), model::Precision::f32, num_pages, 32);
        Scheduler scheduler(cache, requests, config());
        scheduler.enlist_all();
        const Play result = play(
            cache, scheduler, [](size_t request) { return request % 2 ? 100 : 77; }, workers, chance);
        for (const auto& [request, response] : result.response_lengths)
          EXPECT_EQ(response, request % 2 ? 100 : 77);
        ASSERT_EQ(result.response_lengths.size(), requests.size())
            << num_pages << " pages, " << workers << " workers, chance " << chance;
        preemptions += scheduler.num_preemptions();
      }
  EXPECT_GT(preemptions, 0u) << "or this test shows nothing";
}

TEST(Scheduler, KeepsToTheBatchLimit) {
  const auto requests = make_requests({{3, 40}});
  model::KvCache cache(small(), model::Precision::f32, 400, 32);
  Scheduler scheduler(cache, requests, config(/*max_batch=*/7));
  scheduler.enlist_all();
  EXPECT_EQ(play(cache, scheduler, [](size_t) { return 9; }).most_running, 7);
}

TEST(Scheduler, TakesANewBatchLimitFromTheNextAdmissionOn) {
  const auto requests = make_requests({{3, 40}});
  model::KvCache cache(small(), model::Precision::f32, 400, 32);
  Scheduler scheduler(cache, requests, config(/*max_batch=*/7));
  scheduler.enlist_all();
  scheduler.limit_batch(3);
  int64_t most_at_first = 0;
  const Play result = play(cache, scheduler, [&](size_t request) {
    if (request < 9) most_at_first = std::max(most_at_first, scheduler.num_running());
    if (request == 10) scheduler.limit_batch(5);
    return 9;
  });
  EXPECT_EQ(most_at_first, 3);
  EXPECT_EQ(result.most_running, 5);
  EXPECT_EQ(result.response_lengths.size(), 40u);
}

TEST(Scheduler, TakesRequestsOnAsTheyCome) {
  const auto requests = make_requests({{90, 6}, {20, 2}});
  model::KvCache cache(small(), model::Precision::f32, 200, 32);
  Scheduler scheduler(cache, requests, config(/*max_batch=*/7));
  EXPECT_TRUE(scheduler.is_done());
  EXPECT_EQ(scheduler.room(), 7u);
  scheduler.enlist(std::vector<size_t>{0, 1, 6});
  EXPECT_EQ(scheduler.room(), 4u);
  bool is_first = true;
  const Play result = play(cache, scheduler, [&](size_t) {
    if (std::exchange(is_first, false)) scheduler.enlist(std::vector<size_t>{2, 3, 4, 5, 7});
    return 5;
  });
  EXPECT_EQ(result.response_lengths.size(), requests.size());
  EXPECT_TRUE(scheduler.is_done());
  EXPECT_EQ(scheduler.room(), 7u);
}

TEST(Scheduler, EndsResponsesAtTheLimitAndAtTheContext) {
  EXPECT_EQ(longest_cached(10, config()), 109);
  EXPECT_EQ(longest_cached(950, config()), 999);
  const auto requests = make_requests({{10, 1}, {950, 1}});
  model::KvCache cache(small(), model::Precision::f32, 400, 32);
  Scheduler scheduler(cache, requests, config());
  scheduler.enlist_all();
  const Play result = play(cache, scheduler, [](size_t) { return -1; });
  EXPECT_EQ(result.response_lengths.at(0), 100);
  EXPECT_EQ(result.response_lengths.at(1), 50);
}

}  // namespace
}  // namespace ropd::rollout
