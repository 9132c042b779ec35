#include "kernels/elementary.h"

#include "kernels/instruction_sets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementary.cpp"
#include <hwy/foreach_target.h>

#include "kernels/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

[[gnu::flatten]] void exp_values(float* y, const float* x, int64_t count) {
  for_lanes(count, [=](int64_t i, int64_t n) HWY_ATTR { store(exp(load(x + i, n)), y + i, n); });
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ropd::kernels {

HWY_EXPORT(exp_values);

void exp(std::span<float> y, std::span<const float> x) {
  HWY_DYNAMIC_DISPATCH(exp_values)(y.data(), x.data(), static_cast<int64_t>(x.size()));
}

}  // namespace ropd::kernels
#endif
