// A trigger that is set at an iteration known beforehand, whatever happens: a fixed switch behind the same
// interface, to watch beside another or to take its place. A stage that only begins later ends with its first
// iteration.
#pragma once
#include "curriculum/row_trigger.h"

namespace ropd::curriculum {

class FixedTrigger final : public RowTrigger {
 public:
  explicit FixedTrigger(uint64_t iteration);
  bool needs_gradients() const override { return false; }

 private:
  const uint64_t iteration_;
  std::optional<bool> judge(const Evidence& evidence) override { return evidence.iteration >= iteration_; }
};

}  // namespace ropd::curriculum
