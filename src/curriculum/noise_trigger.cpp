#include "curriculum/noise_trigger.h"

#include "base/error.h"

namespace ropd::curriculum {

NoiseTrigger::NoiseTrigger(uint64_t persistence) : persistence_(persistence) {
  if (persistence == 0) fail("trigger.persistence must be > 0, got 0");
}

Verdict NoiseTrigger::observe(const Evidence& evidence) {
  Verdict verdict;
  const Comparison& seen = evidence.gradients;
  if (seen.is_made()) verdict.qualifies = *seen.distance <= *seen.noise;
  consecutive_ = evidence.counts && verdict.qualifies.value_or(false) ? consecutive_ + 1 : 0;
  verdict.consecutive = consecutive_;
  verdict.is_set = consecutive_ >= persistence_;
  return verdict;
}

Json NoiseTrigger::save() const { return {{"consecutive", consecutive_}}; }

void NoiseTrigger::restore(const Json& saved) {
  if (!saved.is_object() || !saved.contains("consecutive") || !saved["consecutive"].is_number_unsigned())
    fail("saved trigger ", saved.dump(), ": expected {\"consecutive\": n} (a run with another trigger?)");
  consecutive_ = saved["consecutive"];
}

}  // namespace ropd::curriculum
