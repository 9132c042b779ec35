#include "distill/objective.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace ropd::distill {
namespace {

using Numbers = std::vector<double>;

Numbers log_softmax(const Numbers& logits) {
  double sum = 0;
  for (const double l : logits) sum += std::exp(l);
  Numbers result;
  for (const double l : logits) result.push_back(l - std::log(sum));
  return result;
}

// The clip table of method.md section 3, both signs, around every bound.
TEST(ClippedTerm, FollowsTheTableOfTheMethod) {
  const ObjectiveConfig config;
  struct Case {
    float ratio;
    bool positive_moves, negative_moves;
  };
  for (const Case& c :
       {Case{0.79f, true, false}, Case{0.8f, true, true}, Case{1.0f, true, true}, Case{1.2f, true, true},
        Case{1.21f, false, true}, Case{2.99f, false, true}, Case{3.01f, false, false}}) {
    // 0.8 and 1.2 are bounds that belong to the inside; a hair of tolerance for exp(log(.)).
    const float log_ratio = std::log(c.ratio) + (c.ratio == 0.8f ? 1e-6f : c.ratio == 1.2f ? -1e-6f : 0.0f);
    const auto positive = clipped_term(0.5f, log_ratio, config),
               negative = clipped_term(-0.5f, log_ratio, config);
    EXPECT_NEAR(positive.slope, c.positive_moves ? -0.5 * c.ratio : 0.0, 1e-5) << c.ratio;
    EXPECT_NEAR(negative.slope, c.negative_moves ? 0.5 * c.ratio : 0.0, 1e-5) << c.ratio;
    EXPECT_NEAR(positive.loss, -0.5 * std::min(c.ratio, 1.2f), 1e-5) << c.ratio;
    EXPECT_NEAR(negative.loss, 0.5 * std::min(3.0f, std::max(c.ratio, 0.8f)), 1e-5) << c.ratio;
    EXPECT_EQ(positive.is_clipped, !c.positive_moves) << c.ratio;
    EXPECT_EQ(negative.is_clipped || negative.is_dual_clipped, !c.negative_moves) << c.ratio;
  }
}

TEST(ClippedTerm, ClampsTheLogRatio) {
  ObjectiveConfig config;
  config.clip = 1e12f;
  config.dual_clip = 1e12f;
  const auto term = clipped_term(-1.0f, 25.0f, config);
  EXPECT_TRUE(term.is_clamped);
  EXPECT_EQ(term.slope, 0.0f);
  EXPECT_NEAR(term.loss / std::exp(20.0), 1.0, 1e-5);
  const auto below = clipped_term(1.0f, -25.0f, config);
  EXPECT_TRUE(below.is_clamped);
  EXPECT_EQ(below.slope, 0.0f);
  EXPECT_NEAR(below.loss / -std::exp(-20.0), 1.0, 1e-5);
}

struct Setting {
  Numbers logits = {0.3, -1.2, 2.0, 0.0, 0.7, -0.4};
  Numbers teacher = {1.0, 0.5, 0.1, -1.0, 0.2, 0.3};
  std::vector<Token> ids = {2, 4, 0};
  std::vector<float> old_logprobs, coefficients = {-0.4f, 0.3f, 0.1f}, teacher_logprobs;
  float weight = 0.7f;

  Setting() {
    const auto student = log_softmax(logits), other = log_softmax(teacher);
    const double shifts[] = {0.05, -0.1, 0.02};  // inside the clip range
    for (size_t j = 0; j < ids.size(); ++j) {
      old_logprobs.push_back(static_cast<float>(student[ids[j]] + shifts[j]));
      teacher_logprobs.push_back(static_cast<float>(other[ids[j]]));
    }
  }
  Position position() const { return {ids, old_logprobs, coefficients, teacher_logprobs, weight, false}; }
};

// Central differences of a loss written in double, at every logit.
void expect_gradient(const std::vector<float>& got, const Numbers& logits,
                     const std::function<double(const Numbers&)>& loss, double weight) {
  for (size_t v = 0; v < logits.size(); ++v) {
    Numbers above = logits, below = logits;
    above[v] += 1e-5;
    below[v] -= 1e-5;
    EXPECT_NEAR(got[v], weight * (loss(above) - loss(below)) / 2e-5, 2e-6) << "logit " << v;
  }
}

std::vector<float> floats(const Numbers& values) { return {values.begin(), values.end()}; }

class EveryTemperature : public testing::TestWithParam<float> {};
INSTANTIATE_TEST_SUITE_P(Objective, EveryTemperature, testing::Values(1.0f, 0.7f));

TEST_P(EveryTemperature, CandidatesGradientIsThatOfTheLoss) {
  const Setting s;
  ObjectiveConfig config;
  config.student_temperature = GetParam();
  config.clip = 0.9f;
  const auto loss = [&](const Numbers& logits) {
    Numbers scaled;
    for (const double l : logits) scaled.push_back(l / GetParam());
    const auto logprobs = log_softmax(scaled);
    double sum = 0;
    for (size_t j = 0; j < s.ids.size(); ++j)
      sum += -s.coefficients[j] * std::exp(logprobs[s.ids[j]] - s.old_logprobs[j]);
    return sum;
  };
  auto logits = floats(s.logits);
  const auto result = position_gradient(logits, s.position(), config);
  EXPECT_NEAR(result.loss, loss(s.logits), 1e-6);
  expect_gradient(logits, s.logits, loss, s.weight);
}

TEST(Renormalized, GradientIsThatOfTheLoss) {
  const Setting s;
  const auto loss = [&](const Numbers& logits) {
    Numbers student, teacher;
    for (size_t j = 0; j < s.ids.size(); ++j) {
      student.push_back(logits[s.ids[j]]);
      teacher.push_back(s.teacher_logprobs[j]);
    }
    student = log_softmax(student);
    teacher = log_softmax(teacher);
    double sum = 0;
    for (size_t j = 0; j < student.size(); ++j) sum += std::exp(student[j]) * (student[j] - teacher[j]);
    return sum;
  };
  auto logits = floats(s.logits);
  const auto result = position_gradient(logits, s.position(), {.kind = ObjectiveKind::renormalized});
  EXPECT_NEAR(result.loss, loss(s.logits), 1e-6);
  expect_gradient(logits, s.logits, loss, s.weight);
}

TEST(TailBucket, GradientIsThatOfTheLoss) {
  const Setting s;
  const auto loss = [&](const Numbers& logits) {
    const auto student = log_softmax(logits);
    double sum = 0, student_rest = 1, teacher_rest = 1;
    for (size_t j = 0; j < s.ids.size(); ++j) {
      const double p = std::exp(student[s.ids[j]]);
      sum += p * (student[s.ids[j]] - s.teacher_logprobs[j]);
      student_rest -= p;
      teacher_rest -= std::exp(static_cast<double>(s.teacher_logprobs[j]));
    }
    return sum + student_rest * std::log(student_rest / teacher_rest);
  };
  auto logits = floats(s.logits);
  const auto result = position_gradient(logits, s.position(), {.kind = ObjectiveKind::tail_bucket});
  EXPECT_NEAR(result.loss, loss(s.logits), 1e-6);
  expect_gradient(logits, s.logits, loss, s.weight);
}

TEST_P(EveryTemperature, FullDivergencesGradientIsThatOfTheLoss) {
  const Setting s;
  const double beta = 0.3;
  const auto divergence = [&](ObjectiveKind kind, const Numbers& logits) {
    Numbers scaled;
    for (const double l : logits) scaled.push_back(l / GetParam());
    const auto p = log_softmax(scaled), q = log_softmax(s.teacher);
    double sum = 0;
    for (size_t v = 0; v < p.size(); ++v) {
      const double ps = std::exp(p[v]), qt = std::exp(q[v]), mix = std::log(beta * qt + (1 - beta) * ps);
      if (kind == ObjectiveKind::full_reverse_kl) sum += ps * (p[v] - q[v]);
      if (kind == ObjectiveKind::full_forward_kl) sum += qt * (q[v] - p[v]);
      if (kind == ObjectiveKind::jsd) sum += (1 - beta) * ps * (p[v] - mix) + beta * qt * (q[v] - mix);
    }
    return sum;
  };
  for (const auto kind :
       {ObjectiveKind::full_reverse_kl, ObjectiveKind::full_forward_kl, ObjectiveKind::jsd}) {
    auto student = floats(s.logits), teacher = floats(s.teacher);
    ObjectiveConfig config{.kind = kind, .beta = static_cast<float>(beta), .student_temperature = GetParam()};
    const auto result = full_position_gradient(student, teacher, s.position(), config);
    EXPECT_NEAR(result.loss, divergence(kind, s.logits), 1e-6);
    expect_gradient(
        student, s.logits, [&](const Numbers& logits) { return divergence(kind, logits); }, s.weight);
  }
}

TEST(EveryObjective, IsZeroWithZeroGradientWhenModelsAgree) {
  Setting s;
  const auto agreed = log_softmax(s.logits);
  for (size_t j = 0; j < s.ids.size(); ++j) {
    s.old_logprobs[j] = s.teacher_logprobs[j] = static_cast<float>(agreed[s.ids[j]]);
    s.coefficients[j] = 0;
  }
  for (const auto kind : {ObjectiveKind::candidates, ObjectiveKind::sampled_token,
                          ObjectiveKind::renormalized, ObjectiveKind::tail_bucket}) {
    auto logits = floats(s.logits);
    const auto result = position_gradient(logits, s.position(), {.kind = kind});
    EXPECT_NEAR(result.loss, 0, 1e-6);
    for (const float g : logits) EXPECT_NEAR(g, 0, 1e-6);
  }
  for (const auto kind :
       {ObjectiveKind::full_reverse_kl, ObjectiveKind::full_forward_kl, ObjectiveKind::jsd}) {
    auto student = floats(s.logits), teacher = student;
    const auto result = full_position_gradient(student, teacher, s.position(), {.kind = kind});
    EXPECT_NEAR(result.loss, 0, 1e-9);
    for (const float g : student) EXPECT_NEAR(g, 0, 1e-7);
  }
}

TEST(EveryObjective, PositionsOfWeightZeroLeaveNothing) {
  Setting s;
  s.weight = 0;
  auto logits = floats(s.logits);
  const auto result = position_gradient(logits, s.position(), {});
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.terms, 0u);
  for (const float g : logits) EXPECT_EQ(g, 0.0f);
}

TEST(PositionGradient, WithTheCurrentPolicyAsOldTheRatioIsExactlyOne) {
  Setting s;
  Position position = s.position();
  position.old_is_current = true;
  auto logits = floats(s.logits);
  const auto result = position_gradient(logits, position, {});
  EXPECT_NEAR(result.loss, 0.4 - 0.3 - 0.1, 1e-7);
  EXPECT_EQ(result.policy_kl, 0);
  EXPECT_EQ(result.clipped, 0u);
}

}  // namespace
}  // namespace ropd::distill
