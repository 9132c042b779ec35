// Who learns: the owner of what training changes. One of the three seams of training (docs/architecture.md):
// parameters, gradient, AdamW's moments and the gradients' statistics lie with the learner, wherever that is;
// whoever drives it sees numbers only. `ropd train` and `ropd sft` use the same.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/file.h"
#include "curriculum/gradient_statistics.h"
#include "distill/scorer.h"
#include "distill/supervised_gradient.h"
#include "train/minibatch.h"

namespace ropd::train {

// What a minibatch's gradient says of itself.
struct MinibatchGradient {
  distill::GradientSums sums;
  uint32_t microbatches = 0;
  double norm = 0;         // global, before clipping
  std::string not_finite;  // why it must not be used: the first tensor that is not finite; empty: it is
  bool is_finite() const { return not_finite.empty(); }
};

// The scalars of a saved learner; its vectors are files beside them.
struct LearnerState {
  uint64_t updates = 0;  // AdamW's own count
  std::optional<curriculum::StatisticsState> statistics = {};

  bool operator==(const LearnerState&) const = default;
};

// Not thread-safe.
class Learner {
 public:
  virtual ~Learner() = default;

  // The gradient of a minibatch at the parameters as they are; kept until the next one. `scorer` is asked for
  // the teacher's rows where the objective needs them.
  [[nodiscard]] virtual MinibatchGradient gradient(std::span<const distill::Shard> minibatch,
                                                   const distill::GradientConfig& config,
                                                   distill::Scorer& scorer) = 0;
  [[nodiscard]] virtual MinibatchGradient gradient(
      std::span<const distill::SupervisedMicrobatch> minibatch) = 0;

  // Adds the gradient, divided by `scale`, to the statistics of the open iteration; it must be finite.
  virtual void observe(double scale) = 0;
  // Closes the iteration's statistics and compares them with those before (curriculum/gradient_statistics.h).
  [[nodiscard]] virtual curriculum::Comparison compare() = 0;

  // One AdamW update by the gradient times gradient_scale.
  virtual void update(double learning_rate, double gradient_scale) = 0;

  // Writes model/ and what going on needs into a checkpoint folder; the card's text describes the model.
  [[nodiscard]] virtual LearnerState save(const Path& folder, const std::string& description) const = 0;
  // Goes on from there; statistics only where `state` has them. Fails when it is another model's.
  virtual void restore(const Path& folder, const LearnerState& state) = 0;
  // Bytes that save() writes.
  virtual uint64_t saved_bytes() const = 0;
};

}  // namespace ropd::train
