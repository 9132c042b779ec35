#include "rollout/crew_generator.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "comm/thread_world.h"
#include "rollout/local_generator.h"
#include "support/naive_model.h"

namespace ropd::rollout {
namespace {

class CrewGeneratorTest : public testing::TestWithParam<int> {
 protected:
  const model::Parameters initial_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 1),
                          current_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 2);
  std::vector<Request> requests_;

  CrewGeneratorTest() {
    set_log_level(LogLevel::warnings);
    for (Token q = 0; q < 9; ++q) {
      const auto prompt = std::make_shared<const std::vector<Token>>(std::vector<Token>{1, q, 2});
      for (uint32_t s = 0; s < 3; ++s)
        requests_.push_back({"q" + std::to_string(q), s, prompt, {5, "test"}, "answer " + std::to_string(q)});
    }
  }

  LocalGenerator make() const {
    EngineConfig config;
    config.max_response_tokens = 12;
    config.eos_ids = {3};
    config.memory_bytes = 16 << 20;
    config.max_batch = 4;  // so that everybody comes back for more
    config.with_logprobs = true;
    return {[this](const Policy& policy) { return (policy.is_initial ? initial_ : current_).weights(); },
            model::Precision::f32, config, /*keeps_memory=*/false};
  }

  static std::vector<Rollout> sample(Generator& generator, std::span<const Request> requests,
                                     RunSummary* summary = nullptr) {
    std::vector<Rollout> rollouts(requests.size());
    uint64_t last_step_done = 0;
    const RunSummary found = generator.run(
        requests, {.on_done =
                       [&](size_t index, Rollout&& rollout) {
                         EXPECT_TRUE(rollouts[index].response_ids.empty()) << "sampled twice";
                         rollouts[index] = std::move(rollout);
                       },
                   .on_step = [&](const RunSummary& so_far) { last_step_done = so_far.num_done; }});
    EXPECT_EQ(last_step_done, found.num_done);
    if (summary) *summary = found;
    return rollouts;
  }

  static void expect_equal(const std::vector<Rollout>& found, const std::vector<Rollout>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].query_id, expected[i].query_id);
      EXPECT_EQ(found[i].sample, expected[i].sample);
      EXPECT_EQ(found[i].prompt_ids, expected[i].prompt_ids);
      EXPECT_EQ(found[i].response_ids, expected[i].response_ids);
      EXPECT_EQ(found[i].finish, expected[i].finish);
      EXPECT_EQ(found[i].policy_step, expected[i].policy_step);
      EXPECT_EQ(found[i].seed, expected[i].seed);
      EXPECT_EQ(found[i].answer, expected[i].answer);
      EXPECT_EQ(found[i].sampled_logprobs, expected[i].sampled_logprobs);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CrewGeneratorTest, testing::Values(1, 2, 3, 4));

TEST_P(CrewGeneratorTest, GivesWhatOneGeneratorGives) {
  LocalGenerator alone = make();
  alone.replace_weights({.is_initial = true, .step = 0});
  RunSummary alone_summary;
  const auto of_initial = sample(alone, requests_, &alone_summary);
  alone.replace_weights({.step = 7});
  const auto of_current = sample(alone, requests_);
  comm::run_thread_world(GetParam(), [&](comm::World& world) {
    comm::Crew crew(world);
    LocalGenerator own = make();
    CrewGenerator generator(own, crew);
    if (!crew.leads()) {
      crew.serve();
      return;
    }
    generator.replace_weights({.is_initial = true, .step = 0});
    RunSummary summary;
    expect_equal(sample(generator, requests_, &summary), of_initial);
    EXPECT_FALSE(summary.was_stopped);
    EXPECT_EQ(summary.num_done, requests_.size());
    EXPECT_EQ(summary.num_tokens, alone_summary.num_tokens);
    EXPECT_EQ(summary.num_at_limit, alone_summary.num_at_limit);
    generator.release();
    generator.replace_weights({.step = 7});
    EXPECT_EQ(generator.policy_step(), 7u);
    expect_equal(sample(generator, requests_), of_current);
    expect_equal(sample(generator, std::span(requests_).first(1)), {of_current[0]});
    crew.dismiss(0);
  });
}

TEST_P(CrewGeneratorTest, ScoresComeWithTheResponses) {
  const auto scored = [&](Generator& generator) {
    std::vector<Scores> all(requests_.size());
    std::optional<size_t> next;
    RunHooks hooks;
    hooks.scores_top_k = 3;
    hooks.on_scores = [&](size_t index, Scores&& scores) {
      next = index;
      all[index] = std::move(scores);
    };
    hooks.on_done = [&](size_t index, Rollout&&) { EXPECT_EQ(next, index); };
    generator.run(requests_, hooks);
    return all;
  };
  LocalGenerator alone = make();
  alone.replace_weights({.step = 7});
  const auto expected = scored(alone);
  comm::run_thread_world(GetParam(), [&](comm::World& world) {
    comm::Crew crew(world);
    LocalGenerator own = make();
    CrewGenerator generator(own, crew);
    EXPECT_TRUE(generator.is_exact(own.precision()));
    if (!crew.leads()) {
      crew.serve();
      return;
    }
    generator.replace_weights({.step = 7});
    const auto found = scored(generator);
    for (size_t i = 0; i < requests_.size(); ++i) {
      EXPECT_EQ(found[i].query_id, requests_[i].query_id);
      EXPECT_EQ(found[i].sample, requests_[i].sample);
      EXPECT_EQ(found[i].top_k, 3u);
      EXPECT_EQ(found[i].candidates, expected[i].candidates);
      EXPECT_EQ(found[i].student_logprobs, expected[i].student_logprobs);
      EXPECT_EQ(found[i].sampled_logprobs, expected[i].sampled_logprobs);
      EXPECT_EQ(found[i].student_entropy, expected[i].student_entropy);
    }
    crew.dismiss(0);
  });
}

TEST_P(CrewGeneratorTest, BystandersSampleNothingThatConcernsThemAndHearOfAllOfIt) {
  if (GetParam() == 1) return;
  LocalGenerator alone = make();
  alone.replace_weights({.step = 7});
  const auto expected = sample(alone, requests_);
  comm::run_thread_world(GetParam(), [&](comm::World& world) {
    comm::Crew crew(world);
    LocalGenerator own = make();
    int begun = 0, heard = 0, ended = 0, served = 0;
    bool have_interest = true;  // the leader's
    CrewGenerator generator(own, crew,
                            {.is_one = [&](int rank) { return rank == world.size() - 1; },
                             .has_interest = [&](const Request&) { return have_interest; },
                             .begin = [&] { ++begun; },
                             .on_done = [&](const Rollout&, const Scores*) { ++heard; },
                             .end = [&] { ++ended; },
                             .serve = [&] { ++served; }});
    if (!crew.leads()) {
      crew.serve();
      EXPECT_EQ(served, world.rank() == world.size() - 1);
      return;
    }
    generator.replace_weights({.step = 7});
    expect_equal(sample(generator, requests_), expected);
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(heard, static_cast<int>(requests_.size()));
    EXPECT_EQ(ended, 1);
    have_interest = false;
    expect_equal(sample(generator, requests_), expected);
    EXPECT_EQ(begun, 1) << "nobody stands by";
    crew.dismiss(0);
  });
}

TEST_P(CrewGeneratorTest, StopRequestEndsEverybodyAndTheRestIsMissing) {
  request_stop();
  comm::run_thread_world(GetParam(), [&](comm::World& world) {
    comm::Crew crew(world);
    LocalGenerator own = make();
    CrewGenerator generator(own, crew);
    if (!crew.leads()) {
      crew.serve();
      return;
    }
    generator.replace_weights({.step = 7});
    const RunSummary summary =
        generator.run(requests_, {.on_done = [](size_t, Rollout&&) { FAIL() << "nothing was begun"; }});
    EXPECT_TRUE(summary.was_stopped);
    EXPECT_EQ(summary.num_done, 0u);
    crew.dismiss(0);
  });
  clear_stop_request();
}

TEST_P(CrewGeneratorTest, FailureOfTheReceiverEndsTheRun) {
  EXPECT_THROW(comm::run_thread_world(
                   GetParam(),
                   [&](comm::World& world) {
                     comm::Crew crew(world);
                     LocalGenerator own = make();
                     CrewGenerator generator(own, crew);
                     if (!crew.leads()) {
                       crew.serve();
                       return;
                     }
                     generator.replace_weights({.step = 7});
                     generator.run(requests_, {.on_done = [](size_t, Rollout&&) { fail("full disk"); }});
                   }),
               Error);
}

}  // namespace
}  // namespace ropd::rollout
