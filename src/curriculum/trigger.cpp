#include "curriculum/trigger.h"

namespace ropd::curriculum {

Evidence evidence_of(const IterationRecord& record) {
  const TriggerRecord& seen = record.trigger;
  return {
      .iteration = record.iteration,
      .gradients = {.within = seen.within, .distance = seen.distance, .noise = seen.noise, .note = seen.note},
      .kl = record.distillation.kl_candidates,
      .length = record.response_length_mean};
}

std::optional<uint64_t> find_tau(Trigger& trigger, std::span<const IterationRecord> iterations) {
  for (const IterationRecord& record : iterations)
    if (trigger.observe(evidence_of(record)).is_set) return record.iteration;
  return std::nullopt;
}

}  // namespace ropd::curriculum
