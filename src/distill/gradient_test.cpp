#include "distill/gradient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "base/threads.h"
#include "distill/scoring.h"
#include "support/naive_model.h"

namespace ropd::distill {
namespace {

using test::NaiveModel;
using test::random_parameters;
using test::tiny_config;

// Some to the same prompt, not next to each other.
std::vector<Rollout> some_rollouts() {
  std::vector<Rollout> rollouts(6);
  rollouts[0] = {.query_id = "a", .prompt_ids = {1, 2, 3}, .response_ids = {4, 5, 36, 7}};
  rollouts[1] = {.query_id = "b", .prompt_ids = {9}, .response_ids = {8}};
  rollouts[2] = {.query_id = "c", .prompt_ids = {5, 5}, .response_ids = {0, 0, 11, 12, 13}};
  rollouts[3] = {.query_id = "a", .sample = 1, .prompt_ids = {1, 2, 3}, .response_ids = {6, 2}};
  rollouts[4] = {.query_id = "c", .sample = 1, .prompt_ids = {5, 5}, .response_ids = {3}};
  rollouts[5] = {.query_id = "a", .sample = 2, .prompt_ids = {1, 2, 3}, .response_ids = {4, 5, 9}};
  return rollouts;
}

struct Prepared {
  std::vector<Rollout> rollouts = some_rollouts();
  std::vector<Supervision> supervision;
  std::vector<TrainingItem> items;
};

// Scored by `old_student`, so that a later student has ratios other than one.
Prepared prepare(const model::Parameters& old_student, const model::Parameters& teacher,
                 const ObjectiveConfig& config) {
  Prepared p;
  model::Workspace workspace;
  auto scores = score_student(old_student.weights(), p.rollouts, {.top_k = 8}, workspace);
  score_teacher(scores, teacher.weights(), p.rollouts, {.top_k = 8}, workspace);
  for (size_t i = 0; i < scores.size(); ++i)
    p.supervision.push_back(supervise(scores[i], p.rollouts[i], config));
  for (size_t i = 0; i < scores.size(); ++i) p.items.push_back({&p.rollouts[i], &p.supervision[i], 0.1f});
  return p;
}

struct Outcome {
  GradientSums result;
  std::vector<float> gradient;
};

Outcome run(const model::Weights& student, const std::vector<Shard>& shards,
            const GradientConfig& config = {}, const TeacherRowsSource& teacher = {}) {
  model::Gradients gradients(student.config);
  std::fill(gradients.values().begin(), gradients.values().end(), 7.0f);  // is replaced
  GradientMemory memory;
  Outcome outcome;
  outcome.result = minibatch_gradient(gradients, memory, student, shards, config, teacher);
  outcome.gradient.assign(gradients.values().begin(), gradients.values().end());
  return outcome;
}

double naive_loss(const NaiveModel& oracle, const Prepared& p) {
  double loss = 0;
  for (const auto& item : p.items) {
    auto tokens = item.rollout->prompt_ids;
    tokens.insert(tokens.end(), item.rollout->response_ids.begin(), item.rollout->response_ids.end());
    const auto logits = oracle.logits(tokens);
    for (size_t t = 0; t < item.rollout->response_ids.size(); ++t) {
      const auto logprobs = NaiveModel::log_softmax(logits[item.rollout->prompt_ids.size() - 1 + t]);
      for (size_t j = 0; j < 8; ++j) {
        const double a = item.supervision->coefficients[t * 8 + j];
        const double r =
            std::exp(logprobs[item.supervision->ids[t * 8 + j]] - item.supervision->old_logprobs[t * 8 + j]);
        double phi = std::max(-a * r, -a * std::clamp(r, 0.8, 1.2));
        if (a < 0) phi = std::min(phi, -3 * a);
        loss += item.token_weight * phi;
      }
    }
  }
  return loss;
}

TEST(MinibatchGradient, EqualsFiniteDifferencesOfTheClippedLossInEveryTensor) {
  const auto config = tiny_config(Architecture::qwen3);
  const auto old_student = random_parameters(config, 1), teacher = random_parameters(config, 2);
  auto student = random_parameters(config, 1);
  for (size_t i = 0; i < student.values().size();
       ++i)  // moved far enough that some ratios leave the clip range
    student.values()[i] += 0.06f * static_cast<float>(random_uniform(3, Purpose::test, {i, 0, 0}) - 0.5);
  const Prepared p = prepare(old_student, teacher, {});
  const Outcome outcome = run(student.weights(), {{p.items}});
  EXPECT_GT(outcome.result.clipped, 0u);
  NaiveModel oracle(student);
  EXPECT_NEAR(outcome.result.weighted_loss, naive_loss(oracle, p), 1e-5);
  for (const auto& slot : student.slots()) {
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < slot.size; i += std::max<int64_t>(1, slot.size / 9)) {
      double& value = oracle.tensor(slot.name)[static_cast<size_t>(i)];
      const double at = value;
      value = at + 1e-6;
      const double above = naive_loss(oracle, p);
      value = at - 1e-6;
      const double below = naive_loss(oracle, p);
      value = at;
      const double want = (above - below) / 2e-6,
                   got = outcome.gradient[static_cast<size_t>(slot.offset + i)];
      difference += (got - want) * (got - want);
      norm += want * want;
    }
    EXPECT_LT(std::sqrt(difference), 5e-4 * std::sqrt(norm) + 1e-6) << slot.name;
  }
}

TEST(MinibatchGradient, IsExactlyZeroWhenStudentAndTeacherAreOne) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 4);
  const Prepared p = prepare(parameters, parameters, {});
  const Outcome outcome = run(parameters.weights(), {{p.items}});
  EXPECT_EQ(outcome.result.weighted_loss, 0.0);
  for (const float g : outcome.gradient) ASSERT_EQ(g, 0.0f);
}

TEST(MinibatchGradient, APositionThatDoesNotCountAddsNothing) {
  const auto config = tiny_config(Architecture::qwen3);
  const auto student = random_parameters(config, 5), teacher = random_parameters(config, 6);
  Prepared p = prepare(student, teacher, {});
  std::fill(p.supervision[0].is_valid.begin(), p.supervision[0].is_valid.end(), 0);
  const Outcome outcome = run(student.weights(), {{{p.items[0]}}});
  EXPECT_EQ(outcome.result.tokens, 0u);
  EXPECT_EQ(outcome.result.weighted_loss, 0.0);
  for (const float g : outcome.gradient) ASSERT_EQ(g, 0.0f);
}

TEST(MinibatchGradient, OfAShardDoesNotDependOnThePackingWhenEmbeddingsAreUntied) {
  const auto config = tiny_config(Architecture::llama, false);
  const auto student = random_parameters(config, 5), teacher = random_parameters(config, 6);
  const Prepared p = prepare(student, teacher, {});
  const auto once = run(student.weights(), {{p.items}}),
             apart = run(student.weights(),
                         {{{p.items[0], p.items[1]}, {p.items[2]}, {p.items[3], p.items[4]}, {p.items[5]}}});
  EXPECT_EQ(once.gradient, apart.gradient);
  EXPECT_EQ(once.result.weighted_loss, apart.result.weighted_loss);
}

TEST(MinibatchGradient, PackingChangesTiedGradientsByRoundingOnly) {
  const auto config = tiny_config(Architecture::qwen3, true);
  const auto student = random_parameters(config, 5), teacher = random_parameters(config, 6);
  const Prepared p = prepare(student, teacher, {});
  const auto once = run(student.weights(), {{p.items}}).gradient,
             apart = run(student.weights(),
                         {{{p.items[0], p.items[1], p.items[2]}, {p.items[3], p.items[4], p.items[5]}}})
                         .gradient;
  for (size_t i = 0; i < once.size(); ++i) ASSERT_NEAR(once[i], apart[i], 1e-6);
}

std::vector<Shard> three_shards(const Prepared& p) {
  return {{{p.items[0]}, {p.items[1]}}, {{p.items[2], p.items[3]}}, {{p.items[4], p.items[5]}}};
}

TEST(MinibatchGradient, IsTheFoldOfTheShardsGradientsInOrder) {
  const auto config = tiny_config(Architecture::qwen3, true);
  const auto student = random_parameters(config, 5), teacher = random_parameters(config, 6);
  const Prepared p = prepare(student, teacher, {});
  const auto shards = three_shards(p);
  const Outcome all = run(student.weights(), shards);
  std::vector<float> fold;
  double loss = 0;
  for (const Shard& shard : shards) {
    const Outcome one = run(student.weights(), {shard});
    fold.resize(one.gradient.size(), -0.0f);  // adding to it changes no bit
    for (size_t i = 0; i < fold.size(); ++i) fold[i] += one.gradient[i];
    loss += one.result.weighted_loss;
  }
  EXPECT_EQ(all.gradient, fold);
  EXPECT_EQ(all.result.weighted_loss, loss);
  EXPECT_EQ(all.result.tokens, 16u);
}

TEST(MinibatchGradient, HasTheSameBitsWithAnyThreadsAndInASmallAndALargeModel) {
  const size_t before = num_threads();
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles}) {
    const auto config = tiny_config(Architecture::qwen3, true);
    const auto student = random_parameters(config, 5), teacher = random_parameters(config, 6);
    const Prepared p = prepare(student, teacher, {});
    const GradientConfig settings{.precision = precision};
    const auto shards = three_shards(p);
    set_num_threads(1);
    model::Weights weights = student.weights();
    const Outcome one = run(weights, shards, settings);
    for (const auto sharing : {model::Sharing::sequences, model::Sharing::products})
      for (const bool keeps_memory : {true, false})
        for (const int threads : {1, 2, 3, 7, 24, 64}) {
          set_num_threads(threads);
          weights.execution = {sharing, keeps_memory};
          const Outcome other = run(weights, shards, settings);
          EXPECT_EQ(one.gradient, other.gradient) << threads;
          EXPECT_EQ(one.result.weighted_loss, other.result.weighted_loss);
        }
  }
  set_num_threads(before);
}

TEST(MinibatchGradient, OfALargeModelTellsItsShareLayerByLayer) {
  const auto student = random_parameters(tiny_config(Architecture::qwen3), 5);
  const Prepared p = prepare(student, student, {});
  model::Weights weights = student.weights();
  weights.execution.sharing = model::Sharing::products;
  std::vector<double> told;
  const GradientConfig config{.progress = [&](double share) { told.push_back(share); }};
  (void)run(weights, {{{p.items[0]}}}, config);
  EXPECT_EQ(told, (std::vector<double>{1.0 / 6, 2.0 / 6, 4.0 / 6}));  // two layers; back takes twice as long
  told.clear();
  (void)run(weights, {{{p.items[1]}}, {{p.items[0]}}}, config);  // of two tokens and of seven
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_NEAR(told[3], (2 + 7 * 1.0 / 6) / 9, 1e-12) << "the first of the second shard";
}

TEST(MinibatchGradient, AFailureInOneShardReachesTheCaller) {
  const auto config = tiny_config(Architecture::qwen3);
  const auto student = random_parameters(config, 5), teacher = random_parameters(config, 6);
  Prepared p = prepare(student, teacher, {});
  p.rollouts[3].response_ids[0] = 37;  // outside the vocabulary
  const size_t before = num_threads();
  set_num_threads(3);
  EXPECT_THROW(run(student.weights(), three_shards(p)), Error);
  set_num_threads(before);
}

TEST(MinibatchGradient, HoldsOneGradientMoreForALargeModelAndOneAShardForASmallOne) {
  const model::Execution small{.sharing = model::Sharing::sequences},
      large{.sharing = model::Sharing::products};
  EXPECT_EQ(num_shard_gradients(small, 8), 7u);
  EXPECT_EQ(num_shard_gradients(large, 8), 1u);
  EXPECT_EQ(num_shard_gradients(small, 1), 0u);
  EXPECT_EQ(num_shard_gradients(large, 1), 0u);
}

TEST(MinibatchGradient, FullReverseKlVanishesWhenModelsAgreeAndPullsOtherwise) {
  const auto config = tiny_config(Architecture::qwen3);
  const auto student = random_parameters(config, 7), teacher = random_parameters(config, 8);
  const ObjectiveConfig objective{.kind = ObjectiveKind::full_reverse_kl};
  const Prepared p = prepare(student, teacher, objective);
  model::Workspace workspace;
  const auto against = [&](const model::Weights& other) {
    return run(student.weights(), three_shards(p), {.objective = objective},
               [&](std::span<const TrainingItem> items) {
                 return teacher_rows(other, items, Precision::f32, workspace);
               });
  };
  const auto zero = against(student.weights());
  EXPECT_EQ(zero.result.weighted_loss, 0.0);
  for (const float g : zero.gradient) ASSERT_EQ(g, 0.0f);
  EXPECT_GT(against(teacher.weights()).result.weighted_loss, 0.0);
}

// As ranks compute them: each its own shards, added up in the order of shards elsewhere.
TEST(ShardGradients, AddedInOrderAreTheMinibatchGradientWhoeverComputesThem) {
  const auto config = tiny_config(Architecture::qwen3);
  const auto student = random_parameters(config, 1), teacher = random_parameters(config, 2);
  const Prepared p = prepare(student, teacher, {});
  const std::vector<Shard> shards = {
      {{p.items[0]}, {p.items[1]}}, {{p.items[2], p.items[3]}}, {{p.items[4]}}};
  for (const auto sharing : {model::Sharing::sequences, model::Sharing::products}) {
    auto weights = student.weights();
    weights.execution.sharing = sharing;
    const Outcome expected = run(weights, shards);
    for (const size_t ranks : {1, 2, 3}) {
      std::vector<std::vector<float>> parts(shards.size());
      std::vector<GradientSums> sums(shards.size());
      for (size_t rank = 0; rank < ranks; ++rank) {
        std::vector<size_t> own;
        for (size_t s = rank; s < shards.size(); s += ranks) own.push_back(s);
        std::vector<size_t> taken;
        GradientMemory memory;
        shard_gradients(
            memory, [&] { return model::Gradients(weights.config); }, weights, shards, own, {}, {},
            [&](size_t s, std::span<const float> gradient, const GradientSums& of_shard) {
              taken.push_back(s);
              parts[s].assign(gradient.begin(), gradient.end());
              sums[s] = of_shard;
            });
        EXPECT_EQ(taken, own);
      }
      std::vector<float> total = parts[0];
      GradientSums sum = sums[0];
      for (size_t s = 1; s < shards.size(); ++s) {
        for (size_t i = 0; i < total.size(); ++i) total[i] += parts[s][i];
        sum += sums[s];
      }
      EXPECT_EQ(total, expected.gradient) << ranks;
      EXPECT_EQ(sum.weighted_loss, expected.result.weighted_loss);
    }
  }
}

}  // namespace
}  // namespace ropd::distill
