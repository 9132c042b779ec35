#include "train/crew_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "distill/local_scorer.h"
#include "support/crew_runs.h"
#include "train/full_learner.h"

namespace ropd::train {
namespace {

// A minibatch of five shards over a model of four blocks, and what a learner says and leaves.
class CrewLearnerTest : public testing::TestWithParam<int> {
 protected:
  const test::TinyWorld world_{test::four_blocks()};
  const model::Parameters teacher_ = test::random_parameters(test::four_blocks(), 2);
  const std::vector<Rollout> rollouts_ = test::random_rollouts(10, 37, 3);

  struct Told {
    std::vector<double> numbers;
    std::string not_finite;
    std::vector<float> parameters;
    bool operator==(const Told&) const = default;
  };

  static LearnerConfig config() { return {.has_statistics = true}; }
  io::SaveModelOptions files() const {
    return {.source_directory = world_.path("student"),
            .config_json = test::tiny_config_json(teacher_.config()),
            .generation_config_json = "",
            .base_model = "tiny",
            .description = ""};
  }

  // Three steps with statistics, a checkpoint, then `spoil` and one gradient more.
  Told work(int ranks, const Path& folder, bool spoils) const {
    Told told;
    comm::run_thread_world(ranks, [&](comm::World& ranks_world) {
      comm::Crew crew(ranks_world);
      FullLearner own(test::random_parameters(test::four_blocks(), 1), config(), files(), ranks_world);
      distill::LocalScorer scorer([&] { return own.weights(); }, [&] { return teacher_.weights(); },
                                  std::nullopt, {});
      CrewLearner learner(own, scorer, crew);
      if (spoils && ranks_world.rank() == 1)
        own.parameters().values()[0] = std::numeric_limits<float>::quiet_NaN();
      if (!crew.leads()) {
        crew.serve();
        return;
      }
      const auto scores = scorer.score(rollouts_, {}).scores;
      std::vector<distill::Supervision> supervision;
      for (size_t i = 0; i < rollouts_.size(); ++i)
        supervision.push_back(distill::supervise(scores[i], rollouts_[i], {}));
      std::vector<distill::Shard> shards;
      for (size_t s = 0; s < 5; ++s)
        shards.push_back({{{&rollouts_[2 * s], &supervision[2 * s], 0.01f}},
                          {{&rollouts_[2 * s + 1], &supervision[2 * s + 1], 0.01f}}});
      for (int step = 0; step < 4; ++step) {
        const MinibatchGradient gradient = learner.gradient(shards, {}, scorer);
        told.not_finite = gradient.not_finite;
        if (!gradient.is_finite()) break;
        told.numbers.insert(told.numbers.end(), {gradient.norm, gradient.sums.weighted_loss,
                                                 static_cast<double>(gradient.sums.terms),
                                                 static_cast<double>(gradient.microbatches)});
        learner.observe(1);
        learner.update(0.01, 0.5);
        if (step % 2 == 0) continue;
        const curriculum::Comparison comparison = learner.compare();
        told.numbers.push_back(comparison.within.value_or(-1));
        told.numbers.push_back(comparison.distance.value_or(-1));
      }
      if (!spoils) {
        std::filesystem::create_directories(folder);
        const LearnerState state = learner.save(folder, "");
        EXPECT_EQ(state.updates, 4u);
        learner.update(0.01, 0.5);
        learner.restore(folder, state);
        const auto values = own.parameters().values();
        told.parameters.assign(values.begin(), values.end());
      }
      crew.dismiss(0);
    });
    return told;
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CrewLearnerTest, testing::Values(2, 3, 4, 8));

TEST_P(CrewLearnerTest, SaysAndSavesWhatOneLearnerDoes) {
  const Told expected = work(1, world_.path("alone"), false),
             found = work(GetParam(), world_.path("crew"), false);
  EXPECT_EQ(found.numbers, expected.numbers);
  EXPECT_TRUE(found.parameters == expected.parameters);
  EXPECT_GT(expected.numbers.back(), 0) << "there was a comparison";
  for (const char* file : {"optimizer.safetensors", "trigger.safetensors", "model/model.safetensors"})
    EXPECT_EQ(sha256_file(world_.path("crew") / file), sha256_file(world_.path("alone") / file)) << file;
}

TEST_P(CrewLearnerTest, AValueThatIsNotFiniteIsFoundWhereverItsOwnerIs) {
  const Told found = work(GetParam(), world_.path("crew"), true);
  EXPECT_TRUE(found.numbers.empty());
  EXPECT_THAT(found.not_finite, testing::HasSubstr("gradient values not finite"));
}

}  // namespace
}  // namespace ropd::train
