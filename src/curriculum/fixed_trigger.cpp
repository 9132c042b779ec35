#include "curriculum/fixed_trigger.h"

#include "base/error.h"

namespace ropd::curriculum {

FixedTrigger::FixedTrigger(uint64_t iteration)
    : RowTrigger({.persistence = 1, .earliest = iteration}), iteration_(iteration) {
  if (iteration == 0) fail("trigger.iteration must be > 0, got 0");
}

}  // namespace ropd::curriculum
