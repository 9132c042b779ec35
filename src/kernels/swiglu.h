// SwiGLU and the elementwise operations around it.
//   out = silu(gate) * up,   silu(x) = x / (1 + exp(-x))
#pragma once
#include <cstdint>
#include <span>

namespace ropd::kernels {

// All [T, F]; out may be gate or up.
void swiglu(std::span<float> out, std::span<const float> gate, std::span<const float> up);

// Overwrites grad_gate and grad_up [T, F] (each has one consumer, so there is nothing to add to). grad_up may
// be grad_out.
void swiglu_grad(std::span<float> grad_gate, std::span<float> grad_up, std::span<const float> grad_out,
                 std::span<const float> gate, std::span<const float> up);

// y += x, elementwise: the residual stream, and its gradient.
void add(std::span<float> y, std::span<const float> x);

// x [T, N] += bias [N] on every row.
void bias_add(std::span<float> x, std::span<const float> bias);

// Adds the column sums of grad_y [T, N] to grad_bias [N], tokens in order.
void bias_add_grad(std::span<float> grad_bias, std::span<const float> grad_y);

// Rounds every value to the nearest bf16 (ties to even), in place.
void round_to_bf16(std::span<float> x);

}  // namespace ropd::kernels
