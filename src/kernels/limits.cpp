#include "kernels/limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "kernels/matmul.h"
#include "kernels/product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/limits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kernels/instruction_sets.h"

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve independent chains hide the latency of the fma units; returns operations done. The sum is returned
// so that nothing is optimised away.
double fma_burst(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> lanes;
  const auto factor = hn::Set(lanes, 1.0f - 1e-7f), addend = hn::Set(lanes, 1e-7f);
  hn::Vec<decltype(lanes)> sum[12];
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) sum[i] = hn::Set(lanes, static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) sum[i] = hn::MulAdd(sum[i], factor, addend);
  }
  auto total = sum[0];
#pragma GCC unroll 12
  for (int i = 1; i < 12; ++i) total = hn::Add(total, sum[i]);
  *sink = hn::GetLane(hn::SumOfLanes(lanes, total));
  return static_cast<double>(rounds) * 12 * 2 * static_cast<double>(hn::Lanes(lanes));
}

float read_all(const float* data, int64_t count) {
  const hn::ScalableTag<float> lanes;
  const int64_t width = static_cast<int64_t>(hn::Lanes(lanes));
  hn::Vec<decltype(lanes)> sum[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) sum[i] = hn::Zero(lanes);
  for (int64_t at = 0; at + 8 * width <= count; at += 8 * width) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sum[i] = hn::Add(sum[i], hn::LoadU(lanes, data + at + i * width));
  }
  auto total = sum[0];
#pragma GCC unroll 8
  for (int i = 1; i < 8; ++i) total = hn::Add(total, sum[i]);
  return hn::GetLane(hn::SumOfLanes(lanes, total));
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ropd::kernels {
HWY_EXPORT(fma_burst);
HWY_EXPORT(read_all);
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Work>
Rate measure(double seconds, const Work& work) {
  const double first = now();
  double best = 0, total = 0, end = first;
  do {
    const double begin = end, done = work();
    end = now();
    best = std::max(best, done / (end - begin));
    total += done;
  } while (end < first + seconds);
  return {best, total / (end - first)};
}

}  // namespace

namespace {

// burst(&sink) on every thread; returns operations done.
template <class Burst>
Rate measure_bursts(double seconds, const Burst& burst) {
  return measure(seconds, [&] {
    std::atomic<double> done = 0;
    parallel_tasks(num_threads(), [&](size_t, size_t) {
      float sink = 0;
      done += burst(&sink);
      if (sink == 42.0f) done += 1;  // never; keeps the result alive
    });
    return done.load();
  });
}

}  // namespace

Rate measure_multiply_adds(double seconds) {
  return measure_bursts(seconds, [](float* sink) { return HWY_DYNAMIC_DISPATCH(fma_burst)(1 << 18, sink); });
}

Rate measure_dot_products(double seconds) {
  return measure_bursts(seconds, [](float* sink) { return native_bf16_burst(1 << 18, sink); });
}

Rate measure_tile_products(double seconds) {
  return measure_bursts(seconds, [](float* sink) { return amx_burst(1 << 16, sink); });
}

bool has_matrix_units() { return has_amx(); }

std::string describe_kernels() {
  choose_instruction_set();
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  const std::string name = hwy::TargetName(usable & -usable);  // the better ones have the lower bits
  return (name.starts_with("AVX3") ? "AVX-512" : name) +
         (prefers_native_bf16() ? "; bf16 products native (AVX-512 BF16)" : "; bf16 products on f32 units") +
         (has_amx() ? "; bf16_tiles on matrix units (AMX)" : "");
}

Rate measure_product(double seconds, Precision precision) {
  // Long enough for the uneven end not to count.
  constexpr int64_t kRows = 1024, kDepth = 1024, kColumns = 4096;
  const std::vector<float> x(kRows * kDepth, 0.5f), w(kColumns * kDepth, 0.25f);
  std::vector<float> y(kRows * kColumns);
  const auto packed = PackedWeight::pack({w.data(), DType::f32, kColumns, kDepth}, precision);
  return measure(seconds, [&] {
    matmul(y, x, packed);
    return 2.0 * kRows * kDepth * kColumns;
  });
}

Rate measure_reading(double seconds) {
  const std::vector<float> memory((size_t{512} << 20) / sizeof(float), 1.0f);
  return measure(seconds, [&] {
    std::atomic<double> sum = 0;
    const size_t parts = num_threads();
    parallel_tasks(parts, [&](size_t part, size_t) {
      const size_t begin = memory.size() * part / parts, end = memory.size() * (part + 1) / parts;
      sum += HWY_DYNAMIC_DISPATCH(read_all)(memory.data() + begin, static_cast<int64_t>(end - begin));
    });
    return static_cast<double>(memory.size() * sizeof(float)) + (sum == 42.0 ? 1 : 0);
  });
}

MachineLimits measure_limits(double seconds) {
  MachineLimits limits;
  // At two moments: for a while both threads may have had to share one core.
  limits.f32_flops = measure_multiply_adds(seconds / 2).best;
  limits.product_flops = measure_product(seconds, Precision::f32).best;
  limits.f32_flops = std::max(limits.f32_flops, measure_multiply_adds(seconds / 2).best);
  limits.bf16_flops = prefers_native_bf16() ? measure_dot_products(seconds).best : limits.f32_flops;
  limits.tiles_flops = has_amx() ? measure_tile_products(seconds).best : limits.f32_flops;
  limits.read_bytes = measure_reading(seconds).best;
  return limits;
}

}  // namespace ropd::kernels
#endif
