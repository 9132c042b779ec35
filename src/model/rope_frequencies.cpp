#include "model/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/rope.h"

namespace ropd::model {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// How much of a frequency is kept, 1 = all of it, 0 = all is divided by the factor.
double kept_by_llama3(double frequency, const RopeScaling& scaling) {
  const double turns = scaling.original_positions * frequency / kTurn;
  return std::clamp((turns - scaling.low_frequency) / (scaling.high_frequency - scaling.low_frequency), 0.0,
                    1.0);
}

// The (fractional) pair that makes so many turns within the original length.
double pair_with_turns(double turns, const ModelConfig& config) {
  return static_cast<double>(config.head_dim) *
         std::log(config.rope_scaling.original_positions / (turns * kTurn)) /
         (2 * std::log(config.rope_theta));
}

double kept_by_yarn(size_t pair, const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  double first = pair_with_turns(scaling.fast_rotations, config),
         last = pair_with_turns(scaling.slow_rotations, config);
  if (scaling.truncates) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(config.head_dim - 1));
  if (first == last) last += 0.001;  // a step instead of a ramp
  return 1 - std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
}

}  // namespace

RopeFrequencies rope_frequencies(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  RopeFrequencies result{kernels::rope_inverse_frequencies(config.head_dim, config.rope_theta), 1};
  if (scaling.kind == RopeScaling::Kind::none) return result;
  for (size_t i = 0; i < result.inverse.size(); ++i) {
    double& frequency = result.inverse[i];
    const double kept = scaling.kind == RopeScaling::Kind::llama3 ? kept_by_llama3(frequency, scaling)
                        : scaling.kind == RopeScaling::Kind::yarn ? kept_by_yarn(i, config)
                                                                  : 0.0;
    frequency = (1 - kept) * frequency / scaling.factor + kept * frequency;
  }
  if (scaling.kind == RopeScaling::Kind::yarn) result.factor = scaling.attention_factor;
  return result;
}

}  // namespace ropd::model
