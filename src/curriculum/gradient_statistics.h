// The gradient statistics of R-OPD (method.md section 5). Over the minibatch gradients g_i, i = 1..m, of one
// iteration, before clipping and with the factor of a short minibatch divided out:
//   mean_k = mean_i g_i          v_k = sum_i |g_i - mean_k|^2 / (m (m-1))
//   D_k = |mean_k - mean_p|^2    V_k = v_k + v_p          p: the preceding observed iteration
// One pass (Welford): a running mean per element, one scalar for the squared deviations. Sums are in double
// over fixed blocks, so the bits do not depend on threads. What D and V lead to is a trigger's (trigger.h).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/block_sum.h"

namespace ropd::curriculum {

// What an iteration's gradients say. Without distance and noise there was nothing to compare, and note says
// why.
struct Comparison {
  uint64_t minibatches = 0;        // m
  std::optional<double> within;    // v_k
  std::optional<double> distance;  // D_k
  std::optional<double> noise;     // V_k
  std::string note;

  bool is_made() const { return distance.has_value(); }
};

// The scalars of saved statistics; the two vectors are saved beside them.
struct StatisticsState {
  uint64_t minibatches = 0;               // observed in the open iteration
  double squared_deviations = 0;          // sum_i |g_i - mean|^2 of the open iteration
  std::optional<double> previous_within;  // v_p; absent: there is no p to compare with

  bool operator==(const StatisticsState&) const = default;
};

// Storage of both vectors belongs to the caller (memory or a mapped file). Not thread-safe; threads inside.
class GradientStatistics {
 public:
  // From the sums of the blocks of these vectors the sum over all blocks, in order. Where the vectors are slices
  // (several ranks), those of the others belong to it.
  using Total = std::function<double(const std::vector<double>& block_sums)>;

  // Both [N]. Their content counts only after restore().
  GradientStatistics(std::span<float> running_mean, std::span<float> previous_mean,
                     Total total = sum_in_order);

  // Adds one minibatch gradient [N], which must be finite. scale is its sequences / nominal minibatch (0.75
  // for 96 of 128) and is divided out; the gradient itself is not changed.
  void observe(std::span<const float> gradient, double scale);

  // Ends the iteration: compares it with the preceding observed one and takes its place. With one minibatch
  // there is no v_k, hence no comparison now and none with this iteration later. An iteration in which
  // nothing was observed (stored rollouts) changes nothing.
  [[nodiscard]] Comparison compare();

  // What a checkpoint keeps; valid after any observe() or compare().
  [[nodiscard]] StatisticsState state() const { return state_; }
  std::span<float> running_mean() const { return running_mean_; }
  std::span<float> previous_mean() const { return previous_mean_; }
  // Goes on from a saved state whose vectors were written into running_mean() and previous_mean().
  void restore(const StatisticsState& state) { state_ = state; }

 private:
  std::span<float> running_mean_;   // [N] of the open iteration
  std::span<float> previous_mean_;  // [N] of iteration p
  Total total_;
  StatisticsState state_;
};

}  // namespace ropd::curriculum
