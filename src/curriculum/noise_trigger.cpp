#include "curriculum/noise_trigger.h"

#include "base/error.h"

namespace ropd::curriculum {

NoiseTrigger::NoiseTrigger(const RowSettings& row, double threshold)
    : RowTrigger(row), threshold_(threshold) {
  if (!(threshold > 0)) fail("trigger.threshold must be > 0, got ", threshold);
}

std::optional<bool> NoiseTrigger::judge(const Evidence& evidence) {
  const Comparison& seen = evidence.gradients;
  if (!seen.is_made()) return std::nullopt;
  return *seen.distance <= threshold_ * *seen.noise;
}

}  // namespace ropd::curriculum
