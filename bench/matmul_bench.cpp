// Matrix products against oneDNN and against the machine's own limits (fused multiply-adds in registers,
// reading memory).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "kernels/matmul.h"

namespace {

using namespace ropd;
using kernels::Precision;

std::vector<float> numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17 - 8) / 8;
  return values;
}

void report(benchmark::State& state, double m, double n, double k) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(2 * m * n * k * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

// All three products of training: 0 = y, 1 = grad_x, 2 = grad_weight.
void ours(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2), form = state.range(3);
  const auto precision = static_cast<Precision>(state.range(4));
  const auto x = numbers(m * k), w = numbers(n * k), dy = numbers(m * n);
  std::vector<float> y(m * n), dx(m * k), dw(n * k);
  const kernels::WeightView weight{w.data(), DType::f32, n, k};
  for (auto _ : state) {
    if (form == 0) kernels::matmul(y, x, weight, precision);
    if (form == 1) kernels::matmul_grad_x(dx, dy, weight, precision);
    if (form == 2) kernels::matmul_grad_weight(dw, dy, x, n, k, precision, {});
    benchmark::ClobberMemory();
  }
  report(state, m, n, k);
}

void ours_packed(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const auto precision = static_cast<Precision>(state.range(3));
  const auto x = numbers(m * k), w = numbers(n * k);
  std::vector<float> y(m * n);
  const auto packed = kernels::PackedWeight::pack({w.data(), DType::f32, n, k}, precision);
  for (auto _ : state) {
    kernels::matmul(y, x, packed);
    benchmark::ClobberMemory();
  }
  report(state, m, n, k);
  state.counters["GB/s"] =
      benchmark::Counter(packed.bytes() * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void onednn(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const bool is_bf16 = state.range(3);
  using namespace dnnl;
  using dt = memory::data_type;
  engine cpu(engine::kind::cpu, 0);
  stream s(cpu);
  const auto type = is_bf16 ? dt::bf16 : dt::f32;
  memory::desc xd({m, k}, type, memory::format_tag::ab), wd({k, n}, type, memory::format_tag::ba),
      yd({m, n}, dt::f32, memory::format_tag::ab);
  matmul::primitive_desc pd;
  try {
    pd = matmul::primitive_desc(matmul::desc(xd, wd, yd), cpu);
  } catch (const dnnl::error&) {
    state.SkipWithError("oneDNN has no such product on this machine");
    return;
  }
  matmul product(pd);
  memory x(xd, cpu), w(wd, cpu), y(yd, cpu);
  for (auto* part : {&x, &w})
    std::fill_n(static_cast<char*>(part->get_data_handle()), part->get_desc().get_size(), 0);
  for (auto _ : state) {
    product.execute(s, {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}});
    s.wait();
  }
  report(state, m, n, k);
}

const int kF32 = 0, kBf16 = 1, kTiles = 2;  // as Precision counts
BENCHMARK(onednn)
    ->Args({512, 3072, 1024, kF32})
    ->Args({512, 1024, 3072, kF32})
    ->Args({8, 3072, 1024, kF32})
    ->UseRealTime();
BENCHMARK(onednn)->Args({64, 3072, 1024, kBf16})->UseRealTime();
BENCHMARK(ours)
    ->Args({512, 3072, 1024, 0, kF32})
    ->Args({512, 3072, 1024, 1, kF32})
    ->Args({512, 3072, 1024, 2, kF32})
    ->Args({512, 3072, 1024, 0, kBf16})
    ->Args({512, 3072, 1024, 0, kTiles})
    ->Args({512, 3072, 1024, 1, kTiles})
    ->Args({512, 3072, 1024, 2, kTiles})
    ->Args({1024, 1024, 1024, 0, kF32})
    ->Args({4096, 96, 96, 0, kF32})
    ->Args({4096, 96, 96, 1, kF32})
    ->Args({4096, 96, 96, 2, kF32})
    ->UseRealTime();
BENCHMARK(ours_packed)
    ->Args({1, 151936, 1024, kBf16})
    ->Args({1, 3072, 1024, kBf16})
    ->Args({1, 151936, 1024, kTiles})
    ->Args({8, 151936, 1024, kTiles})
    ->Args({32, 151936, 1024, kTiles})
    ->Args({64, 3072, 1024, kTiles})
    ->Args({512, 3072, 1024, kTiles})
    ->Args({8, 151936, 1024, kBf16})
    ->Args({32, 3072, 1024, kBf16})
    ->Args({64, 3072, 1024, kBf16})
    ->Args({64, 3072, 1024, kF32})
    ->Args({480, 96, 96, kF32})
    ->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
