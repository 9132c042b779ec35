// The instruction sets our Highway kernels are compiled for; included before foreach_target.h. Few, for the
// sake of compile time. Without FMA (SSE4) products and sums round separately: such machines agree with
// themselves, not with the others.
#pragma once
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/targets.h>

namespace ropd::kernels {

// Before a pointer from HWY_DYNAMIC_DISPATCH is kept: until the first choice it points to a function that
// chooses on every call, which takes microseconds.
inline void choose_instruction_set() {
  if (!hwy::GetChosenTarget().IsInitialized()) hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace ropd::kernels
