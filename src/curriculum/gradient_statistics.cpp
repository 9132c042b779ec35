#include "curriculum/gradient_statistics.h"

#include <cassert>
#include <cmath>
#include <utility>

namespace ropd::curriculum {

GradientStatistics::GradientStatistics(std::span<float> running_mean, std::span<float> previous_mean,
                                       Total total)
    : running_mean_(running_mean), previous_mean_(previous_mean), total_(std::move(total)) {
  assert(running_mean.size() == previous_mean.size());
}

void GradientStatistics::observe(std::span<const float> gradient, double scale) {
  assert(gradient.size() == running_mean_.size() && scale > 0);
  const uint64_t count = ++state_.minibatches;
  const float* values = gradient.data();
  float* mean = running_mean_.data();
  if (count == 1) {  // what the vector held belongs to an earlier iteration
    state_.squared_deviations = 0;
    block_sum(gradient.size(), [=](size_t i) {
      mean[i] = static_cast<float>(values[i] / scale);
      return 0.0;
    });
    return;
  }
  const double weight = 1.0 / static_cast<double>(count);
  state_.squared_deviations += total_(block_sums(gradient.size(), [=](size_t i) {
    const double value = values[i] / scale;
    const double before = value - mean[i];
    const double new_mean = mean[i] + before * weight;
    mean[i] = static_cast<float>(new_mean);
    return before * (value - new_mean);
  }));
}

Comparison GradientStatistics::compare() {
  Comparison result{.minibatches = std::exchange(state_.minibatches, 0)};
  if (result.minibatches == 0) {
    result.note = "no comparison: no gradient was observed in this iteration";
    return result;
  }
  const double squared_deviations = std::exchange(state_.squared_deviations, 0.0);
  const std::optional<double> previous_within = std::exchange(state_.previous_within, std::nullopt);
  if (result.minibatches < 2) {
    result.note = "no comparison: one minibatch gradient in this iteration, its variance needs two";
    return result;
  }
  const double m = static_cast<double>(result.minibatches);
  result.within = squared_deviations / (m * (m - 1));
  if (previous_within) {
    const float* now = running_mean_.data();
    const float* then = previous_mean_.data();
    result.distance = total_(block_sums(running_mean_.size(), [=](size_t i) {
      const double difference = static_cast<double>(now[i]) - then[i];
      return difference * difference;
    }));
    result.noise = *result.within + *previous_within;
  } else {
    result.note = "no comparison: no preceding current-policy iteration with a variance";
  }
  std::swap(running_mean_, previous_mean_);
  state_.previous_within = result.within;
  return result;
}

}  // namespace ropd::curriculum
