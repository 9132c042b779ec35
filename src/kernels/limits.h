// What this machine can do, measured: what `ropd bench` compares with.
#pragma once
#include <string>

#include "kernels/matmul.h"

namespace ropd::kernels {

// Operations or bytes a second. `best` of many short measurements is a limit: what the machine does when
// nobody disturbs it. `sustained` is the mean: what it does just now, and what longer work has to be compared
// with, measured right beside it; on a shared machine the two differ by a third.
struct Rate {
  double best = 0, sustained = 0;
};

// Each takes about `seconds`, uses all threads and keeps no memory.
Rate measure_multiply_adds(double seconds);                 // on registers alone; two operations each
Rate measure_dot_products(double seconds);                  // native bf16 ones, likewise; only where they are
Rate measure_tile_products(double seconds);                 // of matrix units, likewise
Rate measure_product(double seconds, Precision precision);  // our large matrix product: the practical limit
Rate measure_reading(double seconds);                       // streaming through memory larger than any cache

// Which kernels run here: "AVX-512; bf16 products on f32 units; bf16_tiles on matrix units (AMX)".
std::string describe_kernels();

// Whether Precision::bf16_tiles runs on matrix units here: two to three times as fast as bf16 where many rows
// share the weights (benchmarks.md).
bool has_matrix_units();

struct MachineLimits {
  double f32_flops = 0;    // on registers
  double bf16_flops = 0;   // the same for native dot products where there are some; f32 arithmetic elsewhere
  double tiles_flops = 0;  // of matrix units where there are some; f32 arithmetic elsewhere
  double product_flops = 0;
  double read_bytes = 0;
};

// The best of each; takes about `seconds` for each.
MachineLimits measure_limits(double seconds);

}  // namespace ropd::kernels
