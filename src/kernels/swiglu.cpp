#include "kernels/swiglu.h"

#include "kernels/instruction_sets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/swiglu.cpp"
#include <hwy/foreach_target.h>

#include "base/parallel.h"
#include "kernels/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

HWY_INLINE Lanes sigmoid(const Lanes& x) {
  return broadcast(1.0f) / (broadcast(1.0f) + exp(broadcast(0.0f) - x));
}

[[gnu::flatten]] void swiglu_values(float* out, const float* gate, const float* up, int64_t count) {
  for_lanes(count, [=](int64_t i, int64_t n) {
    const Lanes g = load(gate + i, n);
    store(g * sigmoid(g) * load(up + i, n), out + i, n);
  });
}

// silu'(x) = s + x s (1 - s), s = sigmoid(x).
[[gnu::flatten]] void swiglu_grad_values(float* grad_gate, float* grad_up, const float* grad_out,
                                         const float* gate, const float* up, int64_t count) {
  for_lanes(count, [=](int64_t i, int64_t n) {
    const Lanes g = load(gate + i, n), u = load(up + i, n), d = load(grad_out + i, n);
    const Lanes s = sigmoid(g), silu = g * s;
    store(d * u * fma(silu, broadcast(1.0f) - s, s), grad_gate + i, n);
    store(d * silu, grad_up + i, n);
  });
}

[[gnu::flatten]] void add_values(float* y, const float* x, int64_t count) {
  for_lanes(count, [=](int64_t i, int64_t n) { store(load(y + i, n) + load(x + i, n), y + i, n); });
}

// The columns [begin, end) of bias += grad_y [rows, width], tokens in order.
[[gnu::flatten]] void add_columns(float* total, const float* grad_y, int64_t rows, int64_t width,
                                  int64_t begin, int64_t end) {
  for_lanes(end - begin, [=](int64_t i, int64_t n) {
    Lanes column = load(total + begin + i, n);
    for (int64_t t = 0; t < rows; ++t) column = column + load(grad_y + t * width + begin + i, n);
    store(column, total + begin + i, n);
  });
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cassert>

namespace ropd::kernels {

HWY_EXPORT(swiglu_values);
HWY_EXPORT(swiglu_grad_values);
HWY_EXPORT(add_values);
HWY_EXPORT(add_columns);

namespace {
constexpr int64_t kChunk = 8192;
}

void swiglu(std::span<float> out, std::span<const float> gate, std::span<const float> up) {
  assert(out.size() == gate.size() && up.size() == gate.size());
  choose_instruction_set();
  const auto function = HWY_DYNAMIC_DISPATCH(swiglu_values);
  const int64_t count = static_cast<int64_t>(out.size());
  parallel_chunks(count, kChunk, 4 * count, [&](int64_t begin, int64_t end) {
    function(out.data() + begin, gate.data() + begin, up.data() + begin, end - begin);
  });
}

void swiglu_grad(std::span<float> grad_gate, std::span<float> grad_up, std::span<const float> grad_out,
                 std::span<const float> gate, std::span<const float> up) {
  assert(grad_gate.size() == gate.size() && grad_up.size() == gate.size());
  assert(grad_out.size() == gate.size() && up.size() == gate.size());
  choose_instruction_set();
  const auto function = HWY_DYNAMIC_DISPATCH(swiglu_grad_values);
  const int64_t count = static_cast<int64_t>(gate.size());
  parallel_chunks(count, kChunk, 4 * count, [&](int64_t begin, int64_t end) {
    function(grad_gate.data() + begin, grad_up.data() + begin, grad_out.data() + begin, gate.data() + begin,
             up.data() + begin, end - begin);
  });
}

void add(std::span<float> y, std::span<const float> x) {
  assert(x.size() == y.size());
  choose_instruction_set();
  const auto function = HWY_DYNAMIC_DISPATCH(add_values);
  const int64_t count = static_cast<int64_t>(y.size());
  parallel_chunks(count, kChunk, count, [&](int64_t begin, int64_t end) {
    function(y.data() + begin, x.data() + begin, end - begin);
  });
}

void bias_add(std::span<float> x, std::span<const float> bias) {
  if (bias.empty()) return;
  const int64_t width = static_cast<int64_t>(bias.size()), rows = static_cast<int64_t>(x.size()) / width;
  assert(rows * width == static_cast<int64_t>(x.size()));
  choose_instruction_set();
  const auto function = HWY_DYNAMIC_DISPATCH(add_values);
  parallel_chunks(rows, std::max<int64_t>(1, kChunk / width), rows * width, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) function(x.data() + t * width, bias.data(), width);
  });
}

void bias_add_grad(std::span<float> grad_bias, std::span<const float> grad_y) {
  if (grad_bias.empty()) return;
  const int64_t width = static_cast<int64_t>(grad_bias.size()),
                rows = static_cast<int64_t>(grad_y.size()) / width;
  assert(rows * width == static_cast<int64_t>(grad_y.size()));
  choose_instruction_set();
  const auto function = HWY_DYNAMIC_DISPATCH(add_columns);
  parallel_chunks(width, 32, rows * width, [&](int64_t begin, int64_t end) {
    function(grad_bias.data(), grad_y.data(), rows, width, begin, end);
  });
}

void round_to_bf16(std::span<float> x) {
  const int64_t count = static_cast<int64_t>(x.size());
  parallel_chunks(count, kChunk, count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      x[static_cast<size_t>(i)] = bf16_to_float(float_to_bf16(x[static_cast<size_t>(i)]));
  });
}

}  // namespace ropd::kernels
#endif
