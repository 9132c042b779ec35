// What this machine can do at best, measured: the limits that `ropd bench` compares with.
#pragma once

namespace ropd::kernels {

struct MachineLimits {
  double f32_flops = 0;  // fused multiply-adds on registers alone, all threads; two operations each
  double bf16_flops =
      0;  // of bf16 products: the native instructions where there are some, f32 arithmetic elsewhere
  double product_flops = 0;  // what our fastest large matrix product (f32) makes of that: the practical limit
  double read_bytes = 0;     // a second, streaming through memory larger than any cache, all threads
};

// Takes about `seconds` for each limit.
MachineLimits measure_limits(double seconds);

}  // namespace ropd::kernels
