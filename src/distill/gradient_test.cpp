#include "distill/gradient.h"

#include <gtest/gtest.h>

#include <cmath>

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
  MicrobatchResult result;
  std::vector<float> gradient;
};

Outcome run(const model::Parameters& student, const std::vector<std::vector<TrainingItem>>& microbatches,
            const GradientConfig& config, const TeacherRows& teacher = {},
            Precision precision = Precision::f32) {
  const auto weights = student.weights();
  model::Gradients gradients(student);
  model::TrainingPass pass(weights, precision, size_t{1} << 30);
  Outcome outcome;
  for (const auto& items : microbatches) {
    const auto part = accumulate_gradient(gradients, pass, weights, items, config, precision, teacher);
    outcome.result.weighted_loss += part.weighted_loss;
    outcome.result.clipped += part.clipped;
    outcome.result.dual_clipped += part.dual_clipped;
    outcome.result.tokens += part.tokens;
  }
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

TEST(AccumulateGradient, EqualsFiniteDifferencesOfTheClippedLossInEveryTensor) {
  const auto config = tiny_config(Architecture::qwen3);
  const auto old_student = random_parameters(config, 1), teacher = random_parameters(config, 2);
  auto student = random_parameters(config, 1);
  for (size_t i = 0; i < student.values().size();
       ++i)  // moved far enough that some ratios leave the clip range
    student.values()[i] += 0.06f * static_cast<float>(random_uniform(3, Purpose::test, {i, 0, 0}) - 0.5);
  const Prepared p = prepare(old_student, teacher, {});
  const Outcome outcome = run(student, {p.items}, {});
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

TEST(AccumulateGradient, IsExactlyZeroWhenStudentAndTeacherAreOne) {
  const auto parameters = random_parameters(tiny_config(Architecture::qwen3), 4);
  for (const auto precision : {Precision::f32}) {
    const Prepared p = prepare(parameters, parameters, {});
    const Outcome outcome = run(parameters, {p.items}, {}, {}, precision);
    EXPECT_EQ(outcome.result.weighted_loss, 0.0);
    for (const float g : outcome.gradient) ASSERT_EQ(g, 0.0f);
  }
}

TEST(AccumulateGradient, DoesNotDependOnThePackingWhenEmbeddingsAreUntiedAndPromptsDiffer) {
  const auto config = tiny_config(Architecture::llama, false);
  const auto student = random_parameters(config, 5), teacher = random_parameters(config, 6);
  const Prepared p = prepare(student, teacher, {});
  const auto once = run(student, {{p.items[0], p.items[1], p.items[2]}}, {});
  const auto apart = run(student, {{p.items[0]}, {p.items[1]}, {p.items[2]}}, {});
  EXPECT_EQ(once.gradient, apart.gradient);
  EXPECT_NEAR(once.result.weighted_loss, apart.result.weighted_loss, 1e-12);
}

TEST(AccumulateGradient, PackingChangesTiedGradientsAndThoseOfSharedPromptsByRoundingOnly) {
  const auto config = tiny_config(Architecture::qwen3, true);
  const auto student = random_parameters(config, 5), teacher = random_parameters(config, 6);
  const Prepared p = prepare(student, teacher, {});
  const auto once = run(student, {p.items}, {}).gradient,
             some = run(student, {{p.items[0], p.items[5]}, {p.items[1], p.items[2], p.items[3], p.items[4]}},
                        {})
                        .gradient,
             apart =
                 run(student,
                     {{p.items[0]}, {p.items[1]}, {p.items[2]}, {p.items[3]}, {p.items[4]}, {p.items[5]}}, {})
                     .gradient;
  for (size_t i = 0; i < once.size(); ++i) ASSERT_NEAR(once[i], some[i], 1e-6);
  for (size_t i = 0; i < once.size(); ++i) ASSERT_NEAR(once[i], apart[i], 1e-6);
}

TEST(AccumulateGradient, FullReverseKlVanishesWhenModelsAgreeAndPullsOtherwise) {
  const auto config = tiny_config(Architecture::qwen3);
  const auto student = random_parameters(config, 7), teacher = random_parameters(config, 8);
  const ObjectiveConfig objective{.kind = ObjectiveKind::full_reverse_kl};
  const Prepared p = prepare(student, teacher, objective);
  model::Workspace workspace;
  const auto rows_of = [&](const model::Parameters& parameters) {
    return teacher_rows(parameters.weights(), p.items, Precision::f32, workspace);
  };
  const auto zero = run(student, {p.items}, {.objective = objective}, rows_of(student));
  EXPECT_EQ(zero.result.weighted_loss, 0.0);
  for (const float g : zero.gradient) ASSERT_EQ(g, 0.0f);
  const auto pull = run(student, {p.items}, {.objective = objective}, rows_of(teacher));
  EXPECT_GT(pull.result.weighted_loss, 0.0);
}

}  // namespace
}  // namespace ropd::distill
