// What this machine can do, measured: what `ropd bench` compares with.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/matmul.h"

namespace ropd::kernels {

// Operations or bytes a second. `best` of many short measurements is a limit: what the machine does when
// nobody disturbs it. `sustained` is the mean: what it does just now, and what longer work has to be compared
// with, measured right beside it; on a shared machine the two differ by a third.
struct Rate {
  double best = 0, sustained = 0;
};

class MachineProbe {
 public:
  // Each takes about `seconds` and uses all threads.
  Rate multiply_adds(double seconds) const;           // on registers alone; two operations each
  Rate product(double seconds, Precision precision);  // our large matrix product: the practical limit
  Rate reading(double seconds) const;                 // streaming through memory larger than any cache

 private:
  std::vector<float> x_, w_, y_;  // empty until needed
  std::optional<PackedWeight> f32_, bf16_;
};

struct MachineLimits {
  double f32_flops = 0;
  double bf16_flops = 0;  // the native instructions where there are some, f32 arithmetic elsewhere
  double product_flops = 0;
  double read_bytes = 0;
};

// The best of each; takes about `seconds` for each.
MachineLimits measure_limits(MachineProbe& probe, double seconds);

}  // namespace ropd::kernels
