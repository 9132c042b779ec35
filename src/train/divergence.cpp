#include "train/divergence.h"

#include <fmt/format.h>

namespace ropd::train {

std::optional<std::string> DivergenceWatch::observe(const IterationRecord& record) {
  if (factor_ <= 0) return std::nullopt;
  const double kl = record.distillation.kl_candidates;
  const double first = first_kl_.emplace(record.source, kl).first->second;
  std::optional<std::string> alarm;
  if (first > 0 && kl > factor_ * first)
    alarm = fmt::format("KL is {:.3g} a token, it was {:.3g} when '{}' was first used: the run diverges", kl,
                        first, record.source);
  else if (record.grad_norm == 0 && record.skipped_steps == 0)
    alarm = "the gradient is zero: the student no longer learns";
  // The KL is that of the weights the iteration began with: its predecessor's updates did it.
  if (alarm) has_diverged_ = true;
  if (!has_diverged_) last_good_step_ = record.policy_step;
  return alarm;
}

}  // namespace ropd::train
