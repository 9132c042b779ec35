#include "optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/threads.h"

namespace ropd::optim {
namespace {

// The textbook in double, one element at a time.
struct NaiveAdamW {
  AdamWSettings settings;
  std::vector<double> m, v;
  int t = 0;
  void update(std::vector<double>& parameters, const std::vector<float>& gradient, double scale) {
    ++t;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const double g = scale * gradient[i];
      m[i] = settings.beta1 * m[i] + (1 - settings.beta1) * g;
      v[i] = settings.beta2 * v[i] + (1 - settings.beta2) * g * g;
      const double m_hat = m[i] / (1 - std::pow(settings.beta1, t));
      const double v_hat = v[i] / (1 - std::pow(settings.beta2, t));
      parameters[i] *= 1 - settings.learning_rate * settings.weight_decay;
      parameters[i] -= settings.learning_rate * m_hat / (std::sqrt(v_hat) + settings.epsilon);
    }
  }
};

std::vector<float> gradient_at(size_t size, int step) {
  std::vector<float> gradient(size);
  for (size_t i = 0; i < size; ++i)
    gradient[i] = 0.01f * std::sin(static_cast<float>(i) * 1.7f + static_cast<float>(step) * 0.9f);
  return gradient;
}

TEST(AdamW, FirstStepMovesAgainstTheSignByTheLearningRate) {
  std::vector<float> parameters = {1.0f, 1.0f}, m(2), v(2);
  AdamW optimizer({.learning_rate = 0.125, .weight_decay = 0}, m, v);
  optimizer.update(parameters, std::vector<float>{0.5f, -2.0f});
  EXPECT_NEAR(parameters[0], 0.875f, 1e-6f);
  EXPECT_NEAR(parameters[1], 1.125f, 1e-6f);
  EXPECT_EQ(optimizer.updates(), 1u);
}

TEST(AdamW, AgreesWithTheTextbookInDouble) {
  for (size_t size : {size_t{1}, size_t{5}, size_t{16384}, size_t{40001}}) {
    const AdamWSettings settings = {.learning_rate = 1e-2, .weight_decay = 0.1};
    std::vector<float> parameters(size), m(size), v(size);
    for (size_t i = 0; i < size; ++i) parameters[i] = std::cos(static_cast<float>(i));
    std::vector<double> expected(parameters.begin(), parameters.end());
    NaiveAdamW naive{settings, std::vector<double>(size), std::vector<double>(size)};
    AdamW optimizer(settings, m, v);
    for (int step = 0; step < 20; ++step) {
      optimizer.update(parameters, gradient_at(size, step), 0.7);
      naive.update(expected, gradient_at(size, step), 0.7);
    }
    for (size_t i = 0; i < size; ++i) ASSERT_NEAR(parameters[i], expected[i], 2e-6) << i << " of " << size;
  }
}

TEST(AdamW, DecayIsDecoupledFromTheGradient) {
  std::vector<float> parameters = {2.0f}, m(1), v(1);
  AdamW optimizer({.learning_rate = 0.5, .weight_decay = 0.5}, m, v);
  optimizer.update(parameters, std::vector<float>{0.0f});
  EXPECT_EQ(parameters[0], 1.5f);  // 2 - 0.5 * 0.5 * 2
  EXPECT_EQ(m[0], 0.0f);
  EXPECT_EQ(v[0], 0.0f);
}

TEST(AdamW, ZeroGradientWithoutDecayChangesNothing) {
  std::vector<float> parameters = {1.5f, -0.25f}, m(2), v(2);
  AdamW optimizer({.learning_rate = 1, .weight_decay = 0}, m, v);
  optimizer.update(parameters, std::vector<float>{0, 0});
  EXPECT_EQ(parameters, (std::vector<float>{1.5f, -0.25f}));
}

TEST(AdamW, HasTheSameBitsForAnyNumberOfThreads) {
  const size_t threads = num_threads();
  const size_t size = 100003;
  std::vector<float> results[3];
  for (int run = 0; run < 3; ++run) {
    set_num_threads(run + 1);
    std::vector<float> parameters(size, 0.5f), m(size), v(size);
    AdamW optimizer({.learning_rate = 1e-3}, m, v);
    for (int step = 0; step < 3; ++step) optimizer.update(parameters, gradient_at(size, step));
    results[run] = parameters;
  }
  set_num_threads(threads);
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), size * 4), 0);
  EXPECT_EQ(std::memcmp(results[0].data(), results[2].data(), size * 4), 0);
}

TEST(AdamW, GoesOnExactlyFromSavedState) {
  const size_t size = 1001;
  std::vector<float> parameters(size, 0.5f), m(size), v(size);
  AdamW optimizer({.learning_rate = 1e-3}, m, v);
  for (int step = 0; step < 3; ++step) optimizer.update(parameters, gradient_at(size, step));
  std::vector<float> saved_parameters = parameters, saved_m(optimizer.m().begin(), optimizer.m().end()),
                     saved_v(optimizer.v().begin(), optimizer.v().end());
  AdamW restored({.learning_rate = 1e-3}, saved_m, saved_v, optimizer.updates());
  for (int step = 3; step < 6; ++step) {
    optimizer.update(parameters, gradient_at(size, step));
    restored.update(saved_parameters, gradient_at(size, step));
  }
  EXPECT_EQ(parameters, saved_parameters);
}

TEST(AdamW, RefusesSettingsThatCannotWork) {
  std::vector<float> m(1), v(1);
  EXPECT_THROW(AdamW({.learning_rate = -1}, m, v), Error);
  EXPECT_THROW(AdamW({.beta1 = 1.0}, m, v), Error);
  EXPECT_THROW(AdamW({.beta2 = 1.5}, m, v), Error);
  EXPECT_THROW(AdamW({.epsilon = 0}, m, v), Error);
  EXPECT_THROW(AdamW({.weight_decay = -0.1}, m, v), Error);
}

}  // namespace
}  // namespace ropd::optim
