#include "train/full_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "distill/local_scorer.h"
#include "io/safetensors.h"
#include "support/tiny_world.h"

namespace ropd::train {
namespace {

using test::error_of;
using testing::HasSubstr;

class FullLearnerTest : public testing::Test {
 protected:
  const test::TinyWorld world_;
  const model::Parameters teacher_ = test::random_parameters(test::tiny_config(Architecture::qwen3), 2);
  const std::vector<Rollout> rollouts_ = test::random_rollouts(6, 37, 3);
  const distill::ObjectiveConfig objective_;

  static model::Parameters start() {
    return test::random_parameters(test::tiny_config(Architecture::qwen3), 1);
  }
  LearnerConfig config(bool keeps_memory = true) const {
    return {.has_statistics = true, .keeps_memory = keeps_memory};
  }
  io::SaveModelOptions files() const {
    return {.source_directory = world_.path("student"),
            .config_json = test::tiny_config_json(teacher_.config()),
            .generation_config_json = "",
            .base_model = "tiny",
            .description = ""};
  }
  // What the tests of a learner need of a scored minibatch: two shards of a microbatch of three responses.
  struct Minibatch {
    std::vector<distill::Supervision> supervision;
    std::vector<distill::Shard> shards;
  };
  Minibatch minibatch(FullLearner& learner, const distill::ObjectiveConfig& objective) const {
    distill::LocalScorer scorer = scorer_of(learner);
    const auto scoring = scorer.score(rollouts_, {});
    Minibatch result;
    for (size_t i = 0; i < rollouts_.size(); ++i)
      result.supervision.push_back(distill::supervise(scoring.scores[i], rollouts_[i], objective));
    for (size_t m = 0; m < 2; ++m) {
      result.shards.push_back({{}});
      for (size_t i = 3 * m; i < 3 * m + 3; ++i)
        result.shards.back().front().push_back({&rollouts_[i], &result.supervision[i], 0.01f});
    }
    return result;
  }
  distill::LocalScorer scorer_of(FullLearner& learner) const {
    return {
        [&learner] { return learner.weights(); }, [this] { return teacher_.weights(); }, std::nullopt, {}};
  }
  MinibatchGradient gradient(FullLearner& learner, const distill::ObjectiveConfig& objective = {}) const {
    auto scorer = scorer_of(learner);
    return learner.gradient(minibatch(learner, objective).shards, {.objective = objective}, scorer);
  }
  void step(FullLearner& learner) const {
    (void)gradient(learner);
    learner.observe(1);
    learner.update(0.01, 1);
  }
  static std::vector<float> values(FullLearner& learner) {
    return {learner.parameters().values().begin(), learner.parameters().values().end()};
  }
};

TEST_F(FullLearnerTest, AStepIsTheGradientOfAllShardsThroughAdamW) {
  FullLearner learner(start(), config());
  const MinibatchGradient result = gradient(learner);
  EXPECT_TRUE(result.is_finite());
  EXPECT_EQ(result.microbatches, 2u);
  EXPECT_GT(result.norm, 0);
  // The same by hand.
  const auto parameters = start();
  auto expected = std::vector<float>(parameters.values().begin(), parameters.values().end());
  const auto weights = parameters.weights();
  model::Gradients sum(parameters.config());
  distill::GradientMemory memory;
  const Minibatch batch = minibatch(learner, {});
  const double loss = distill::minibatch_gradient(sum, memory, weights, batch.shards, {}).weighted_loss;
  EXPECT_EQ(result.sums.weighted_loss, loss);
  EXPECT_EQ(result.norm, optim::global_norm(sum.values()));
  std::vector<float> m(expected.size()), v(expected.size());
  optim::AdamW adamw({.learning_rate = 0.01}, m, v);
  adamw.update(expected, sum.values(), 0.5);
  learner.update(0.01, 0.5);
  EXPECT_EQ(values(learner), expected);
}

TEST_F(FullLearnerTest, GivingMemoryBackChangesNoBit) {
  for (const auto kind : {distill::ObjectiveKind::candidates, distill::ObjectiveKind::jsd}) {
    FullLearner keeps(start(), config(true)), gives(start(), config(false));
    for (FullLearner* learner : {&keeps, &gives})
      for (int step = 0; step < 3; ++step) {
        (void)gradient(*learner, {.kind = kind});
        learner->observe(1);
        learner->update(0.01, 1);
      }
    EXPECT_EQ(values(keeps), values(gives));
    EXPECT_EQ(keeps.compare().within, gives.compare().within);
  }
}

TEST_F(FullLearnerTest, ObservesItsGradientWithTheScaleDividedOut) {
  FullLearner learner(start(), config());
  (void)gradient(learner);
  learner.observe(1);
  learner.observe(0.5);  // the same gradient counts twice as much: deviations g/2 from the mean 3g/2
  const double norm = gradient(learner).norm;
  const auto comparison = learner.compare();
  EXPECT_EQ(comparison.minibatches, 2u);
  EXPECT_NEAR(*comparison.within, norm * norm / 4, 1e-6 * norm * norm);  // 2 (g/2)^2 / (2 * 1)
}

TEST_F(FullLearnerTest, ANonFiniteGradientIsNamed) {
  auto parameters = start();
  for (const auto& slot : parameters.slots())
    if (slot.name == "model.norm.weight")
      parameters.values()[static_cast<size_t>(slot.offset)] = std::numeric_limits<float>::infinity();
  for (const bool keeps_memory : {true, false}) {
    auto copy = start();
    std::ranges::copy(parameters.values(), copy.values().begin());
    FullLearner learner(std::move(copy), config(keeps_memory));
    const MinibatchGradient result = gradient(learner);
    EXPECT_FALSE(result.is_finite());
    EXPECT_THAT(result.not_finite, HasSubstr("not finite"));
  }
}

TEST_F(FullLearnerTest, GoesOnFromARoundedModelBitForBit) {
  LearnerConfig rounds = config();
  rounds.stored = DType::bf16;
  FullLearner whole(start(), rounds, files()), later(start(), config(), files());
  step(whole);
  const Path folder = world_.path("checkpoint");
  std::filesystem::create_directories(folder);
  const LearnerState state = whole.save(folder, "");
  const io::ModelDirectory model(folder / "model");
  EXPECT_EQ(model.config().dtype, "bfloat16");
  const auto rounded = model::Parameters::load(model);
  for (size_t i = 0; i < rounded.values().size(); ++i)
    ASSERT_EQ(rounded.values()[i], bf16_to_float(float_to_bf16(values(whole)[i])));
  later.restore(folder, state);
  EXPECT_EQ(values(later), values(whole));
  for (FullLearner* learner : {&whole, &later}) step(*learner);
  EXPECT_EQ(values(whole), values(later));
  uint64_t bytes = 0;
  for (const char* name :
       {"model/model.safetensors", "master.safetensors", "optimizer.safetensors", "trigger.safetensors"}) {
    const io::SafetensorsFile file(folder / name);
    for (const auto& tensor : file.tensors()) bytes += tensor.bytes.size();
  }
  EXPECT_EQ(whole.saved_bytes(), bytes);
}

TEST_F(FullLearnerTest, DoesNotGoOnFromARoundedModelAlone) {
  LearnerConfig rounds = config();
  rounds.stored = DType::bf16;
  FullLearner learner(start(), rounds, files());
  const Path folder = world_.path("checkpoint");
  std::filesystem::create_directories(folder);
  const LearnerState state = learner.save(folder, "");
  std::filesystem::remove(folder / "master.safetensors");
  EXPECT_THAT(error_of([&] { learner.restore(folder, state); }),
              HasSubstr("rounded (not F32) and there is no master.safetensors"));
}

TEST_F(FullLearnerTest, GoesOnFromACheckpointBitForBit) {
  FullLearner whole(start(), config(), files()), later(start(), config(), files());
  step(whole);
  step(whole);
  (void)whole.compare();
  step(whole);
  const Path folder = world_.path("checkpoint");
  std::filesystem::create_directories(folder);
  const LearnerState state = whole.save(folder, "text of the card");
  EXPECT_EQ(state.updates, 3u);
  EXPECT_THAT(read_file(folder / "model" / "README.md"), HasSubstr("text of the card"));
  later.restore(folder, state);
  for (FullLearner* learner : {&whole, &later}) step(*learner);
  EXPECT_EQ(values(whole), values(later));
  const auto a = whole.compare(), b = later.compare();
  EXPECT_EQ(a.distance, b.distance);
  EXPECT_EQ(a.noise, b.noise);
  EXPECT_TRUE(a.is_made());
}

TEST_F(FullLearnerTest, AContinuationBeginsItsStatisticsAnew) {
  FullLearner first(start(), config(), files()), next(start(), config(), files());
  (void)gradient(first);
  first.observe(1);
  first.update(0.01, 1);
  const Path folder = world_.path("checkpoint");
  std::filesystem::create_directories(folder);
  const LearnerState state = first.save(folder, "");
  next.restore(folder, {.updates = state.updates});
  EXPECT_EQ(values(next), values(first));
  EXPECT_EQ(next.compare().minibatches, 0u);
}

TEST_F(FullLearnerTest, ACheckpointOfAnotherModelIsRefused) {
  FullLearner learner(start(), config(), files());
  const Path folder = world_.path("checkpoint");
  std::filesystem::create_directories(folder);
  const LearnerState state = learner.save(folder, "");
  ModelConfig wider = test::tiny_config(Architecture::qwen3);
  wider.hidden_size *= 2;
  FullLearner other(test::random_parameters(wider, 1), config());
  EXPECT_THAT(error_of([&] { other.restore(folder, state); }), HasSubstr("another model"));
}

}  // namespace
}  // namespace ropd::train
