// When sampling from the current policy has done its work: a trigger judges the closed iterations, in order,
// and is set once, at iteration tau; the curriculum's next stage begins at tau + 1. What it judges are
// numbers of the iteration's record, so a recorded run can be judged again, by another trigger too. A new
// trigger is a new file beside noise_trigger.h (docs/how_to.md); most are row_trigger.h's. The gradients' statistics lie with who
// learns (gradient_statistics.h).
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "base/json.h"
#include "curriculum/gradient_statistics.h"
#include "records/metrics.h"

namespace ropd::curriculum {

// What a closed iteration tells a trigger.
struct Evidence {
  uint64_t iteration = 0;     // from 1
  Comparison gradients = {};  // where they were observed
  double kl = 0;              // student to teacher on the candidates, mean over tokens
  double length = 0;          // of the responses, mean
  bool counts = true;         // of the stage that the trigger ends; else only its record is wanted
};

struct Verdict {
  std::optional<bool> qualifies;  // does this iteration speak for the switch; absent: it says nothing
  uint64_t consecutive = 0;       // iterations in a row that do
  bool is_set = false;            // the stage ends with this iteration
};

// Not thread-safe.
class Trigger {
 public:
  virtual ~Trigger() = default;
  // Does it read Evidence::gradients? If not, no gradient is observed for its sake.
  virtual bool needs_gradients() const = 0;
  // The soonest iteration that may be tau when `before` iterations come before its stage.
  virtual uint64_t earliest_end(uint64_t before) const = 0;
  // Judges the next iteration on current-policy rollouts; every one is shown, once.
  [[nodiscard]] virtual Verdict observe(const Evidence& evidence) = 0;
  // What a checkpoint keeps: a JSON object.
  [[nodiscard]] virtual Json save() const = 0;
  // Fails when `saved` is not what save() gave.
  virtual void restore(const Json& saved) = 0;
};

[[nodiscard]] Evidence evidence_of(const IterationRecord& record);

// Where a trigger that has seen nothing yet would be set in recorded iterations that all count.
[[nodiscard]] std::optional<uint64_t> find_tau(Trigger& trigger, std::span<const IterationRecord> iterations);

}  // namespace ropd::curriculum
