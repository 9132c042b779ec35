// Chooses an instruction set for Highway kernels and restores the machine's own choice, which belongs to the
// process.
#pragma once
#include <cstdint>

#include "kernels/instruction_sets.h"

namespace ropd::test {

class ChosenTarget {
 public:
  explicit ChosenTarget(int64_t target) { hwy::GetChosenTarget().Update(target); }
  ~ChosenTarget() { hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }
};

}  // namespace ropd::test
