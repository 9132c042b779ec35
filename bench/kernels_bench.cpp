// Kernels against the limits of the machine, measured in the same run: the multiply-add peak and the speed of
// reading memory.
//   build/bench/kernels_bench --benchmark_filter=Attention
// On one core (taskset -c 0) rates are per second of processor time, which a busy machine disturbs least;
// otherwise per second.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <vector>

#include "base/parallel.h"
#include "kernels/attention.h"
#include "kernels/elementary.h"
#include "kernels/rms_norm.h"
#include "kernels/swiglu.h"
#include "kernels/vocab_head.h"
#include "kernels/vocab_rows.h"

namespace ropd::kernels {
namespace {

std::vector<float> random_values(size_t count, float scale = 1.0f) {
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(generator);
  return values;
}

void choose_clock(benchmark::internal::Benchmark* bench) {
  if (num_threads() > 1) bench->UseRealTime();
}

void report_flops(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void report_bytes(benchmark::State& state, double bytes) {
  state.counters["GB/s"] =
      benchmark::Counter(bytes * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// The limit of reading: a sum over an array far larger than the caches, all threads.
void BM_ReadMemory(benchmark::State& state) {
  const std::vector<float> data = random_values(size_t{1} << 27);
  const int64_t count = static_cast<int64_t>(data.size());
  for (auto _ : state) {
    std::atomic<double> total = 0;
    parallel_chunks(count, 65536, count, [&](int64_t block, int64_t) {
      float lanes[64] = {};
      for (int64_t i = block; i < block + 65536; i += 64)
        for (int64_t j = 0; j < 64; ++j) lanes[j] += data[static_cast<size_t>(i + j)];
      for (float lane : lanes) total += lane;
    });
    benchmark::DoNotOptimize(total);
  }
  report_bytes(state, static_cast<double>(count) * 4);
}
BENCHMARK(BM_ReadMemory)->Unit(benchmark::kMillisecond)->Apply(choose_clock);

// The practical limit of arithmetic: a large f32 product.
void BM_ProductLimit(benchmark::State& state) {
  const int64_t size = 1024;
  const auto x = random_values(static_cast<size_t>(size * size)),
             w = random_values(static_cast<size_t>(size * size));
  std::vector<float> y(x.size());
  const PackedWeight weight = PackedWeight::pack({w.data(), DType::f32, size, size}, Precision::f32);
  for (auto _ : state) matmul(y, x, weight);
  report_flops(state,
               2.0 * static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size));
}
BENCHMARK(BM_ProductLimit)->Unit(benchmark::kMillisecond)->Apply(choose_clock);

void BM_Exp(benchmark::State& state) {
  const auto x = random_values(4096, 20.0f);
  std::vector<float> y(x.size());
  for (auto _ : state) exp(y, x);
  state.counters["values/s"] =
      benchmark::Counter(4096.0 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Exp);

struct Packed {
  AttentionShape shape;
  std::vector<int64_t> begins{0};
  std::vector<float> q, k, v, out, log_sum_exp;
  double pairs = 0;  // of query and visible key, all heads
  Packed(int64_t length, int64_t sequences, int64_t heads, int64_t kv_heads, int64_t width)
      : shape{heads, kv_heads, width, 1.0f / std::sqrt(static_cast<float>(width))} {
    for (int64_t s = 0; s < sequences; ++s) begins.push_back(begins.back() + length);
    const size_t tokens = static_cast<size_t>(begins.back());
    q = random_values(tokens * static_cast<size_t>(heads * width));
    k = random_values(tokens * static_cast<size_t>(kv_heads * width));
    v = random_values(tokens * static_cast<size_t>(kv_heads * width));
    out.resize(q.size());
    log_sum_exp.resize(tokens * static_cast<size_t>(heads));
    pairs = static_cast<double>(sequences * heads) * static_cast<double>(length) *
            static_cast<double>(length + 1) / 2;
  }
  void forward() { attention(out, log_sum_exp, q, k, v, begins, shape); }
};

// Arguments: length, sequences, heads, kv heads, head size. Useful operations only: pairs a query may see.
void BM_Attention(benchmark::State& state) {
  Packed packed(state.range(0), state.range(1), state.range(2), state.range(3), state.range(4));
  for (auto _ : state) packed.forward();
  report_flops(state, 4.0 * packed.pairs * static_cast<double>(state.range(4)));
}
void BM_AttentionGrad(benchmark::State& state) {
  Packed packed(state.range(0), state.range(1), state.range(2), state.range(3), state.range(4));
  packed.forward();
  const auto grad_out = random_values(packed.q.size());
  std::vector<float> grad_q(packed.q.size()), grad_k(packed.k.size()), grad_v(packed.v.size());
  for (auto _ : state)
    attention_grad(grad_q, grad_k, grad_v, grad_out, packed.out, packed.log_sum_exp, packed.q, packed.k,
                   packed.v, packed.begins, packed.shape);
  report_flops(state, 10.0 * packed.pairs * static_cast<double>(state.range(4)));
}
void attention_shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({512, 1, 16, 8, 128})
      ->Args({4096, 1, 16, 8, 128})
      ->Args({64, 256, 4, 2, 32})
      ->Args({300, 32, 4, 2, 24});
  bench->Unit(benchmark::kMillisecond)->Apply(choose_clock);
}
BENCHMARK(BM_Attention)->Apply(attention_shapes);
BENCHMARK(BM_AttentionGrad)->Apply(attention_shapes);

// Decoding: one row for each sequence against a long context. Arguments: context, sequences, bf16.
void BM_DecodeAttention(benchmark::State& state) {
  const int64_t context = state.range(0), sequences = state.range(1), page_tokens = 64;
  const AttentionShape shape{16, 8, 128, 0.088388f};
  KvPageView cache;
  cache.dtype = state.range(2) ? DType::bf16 : DType::f32;
  cache.page_tokens = page_tokens;
  cache.num_kv_heads = 8;
  cache.head_dim = 128;
  cache.num_pages = sequences * context / page_tokens;
  std::vector<float> values = random_values(static_cast<size_t>(cache.num_pages * cache.page_elements()));
  std::vector<Bf16> rounded;
  cache.data = values.data();
  if (cache.dtype == DType::bf16) {
    for (float value : values) rounded.push_back(float_to_bf16(value));
    values = {};
    cache.data = rounded.data();
  }
  std::vector<int32_t> pages(static_cast<size_t>(cache.num_pages));
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<int32_t>(i);
  std::vector<PagedRows> groups;
  for (int64_t s = 0; s < sequences; ++s)
    groups.push_back({pages.data() + s * context / page_tokens, context - 1, 1});
  const auto q = random_values(static_cast<size_t>(sequences * 16 * 128));
  const auto kv = random_values(static_cast<size_t>(sequences * 8 * 128));
  std::vector<float> out(q.size());
  for (auto _ : state) paged_attention(out, cache, q, kv, kv, groups, shape);
  report_bytes(state, static_cast<double>(cache.num_pages * cache.page_bytes()));
}
BENCHMARK(BM_DecodeAttention)
    ->Args({4096, 8, 0})
    ->Args({4096, 8, 1})
    ->Args({16384, 4, 0})
    ->Args({16384, 4, 1})
    ->Unit(benchmark::kMillisecond)
    ->Apply(choose_clock);

// The head of the 0.6B shape: the bare product in the same blocks, then scoring on top of it. Argument: bf16
// products.
constexpr int64_t kVocabulary = 151936, kWidth = 1024, kRows = 512;

void BM_HeadProduct(benchmark::State& state) {
  const auto head = random_values(static_cast<size_t>(kVocabulary * kWidth), 0.05f);
  const auto hidden = random_values(static_cast<size_t>(kRows * kWidth));
  std::vector<float> logits(static_cast<size_t>(kRows * kVocabBlock));
  const Precision precision = state.range(0) ? Precision::bf16 : Precision::f32;
  for (auto _ : state)
    for (int64_t begin = 0; begin < kVocabulary; begin += kVocabBlock) {
      const int64_t entries = std::min(kVocabBlock, kVocabulary - begin);
      matmul(std::span(logits).first(static_cast<size_t>(kRows * entries)), hidden,
             {head.data() + begin * kWidth, DType::f32, entries, kWidth}, precision);
    }
  report_flops(state, 2.0 * static_cast<double>(kVocabulary * kWidth) * static_cast<double>(kRows));
}
void BM_ScoreVocabulary(benchmark::State& state) {
  const auto head = random_values(static_cast<size_t>(kVocabulary * kWidth), 0.05f);
  const auto hidden = random_values(static_cast<size_t>(kRows * kWidth));
  const Precision precision = state.range(0) ? Precision::bf16 : Precision::f32;
  const ScoreRequest request{1.0f, 16, state.range(1) != 0, {}, {}};
  for (auto _ : state)
    benchmark::DoNotOptimize(
        score_vocabulary(hidden, {head.data(), DType::f32, kVocabulary, kWidth}, precision, request));
  report_flops(state, 2.0 * static_cast<double>(kVocabulary * kWidth) * static_cast<double>(kRows));
}
BENCHMARK(BM_HeadProduct)->Arg(0)->Unit(benchmark::kMillisecond)->Apply(choose_clock);
BENCHMARK(BM_ScoreVocabulary)->Args({0, 0})->Args({0, 1})->Unit(benchmark::kMillisecond)->Apply(choose_clock);

void BM_RowLogSumExp(benchmark::State& state) {
  const auto logits = random_values(kVocabulary, 10.0f);
  for (auto _ : state) benchmark::DoNotOptimize(row_log_sum_exp(logits));
  report_bytes(state, static_cast<double>(kVocabulary) * 4);
}
BENCHMARK(BM_RowLogSumExp)->Unit(benchmark::kMicrosecond);

void BM_CandidateGradient(benchmark::State& state) {
  auto logits = random_values(kVocabulary, 10.0f);
  std::vector<int32_t> ids(16);
  for (size_t j = 0; j < ids.size(); ++j) ids[j] = static_cast<int32_t>(j * 9001);
  const std::vector<float> coefficients(16, 0.1f);
  for (auto _ : state) candidate_gradient(logits, ids, coefficients, 1.0f, 15.0f);
  report_bytes(state, static_cast<double>(kVocabulary) * 8);
}
BENCHMARK(BM_CandidateGradient)->Unit(benchmark::kMicrosecond);

void BM_RmsNorm(benchmark::State& state) {
  const size_t rows = 512, width = 1024;
  const auto x = random_values(rows * width), weight = random_values(width);
  std::vector<float> y(x.size()), inv_rms(rows);
  for (auto _ : state) rms_norm(y, inv_rms, x, weight, 1e-6f);
  report_bytes(state, static_cast<double>(x.size()) * 8);
}
void BM_RmsNormGrad(benchmark::State& state) {
  const size_t rows = 512, width = 1024;
  const auto x = random_values(rows * width), weight = random_values(width),
             grad_y = random_values(rows * width);
  std::vector<float> grad_x(x.size()), inv_rms(rows, 1.0f), grad_weight(width);
  for (auto _ : state) rms_norm_grad(grad_x, grad_weight, grad_y, x, inv_rms, weight);
  report_bytes(state, static_cast<double>(x.size()) * 24);
}
void BM_Swiglu(benchmark::State& state) {
  const auto gate = random_values(512 * 3072), up = random_values(512 * 3072);
  std::vector<float> out(gate.size());
  for (auto _ : state) swiglu(out, gate, up);
  report_bytes(state, static_cast<double>(gate.size()) * 12);
}
BENCHMARK(BM_RmsNorm)->Unit(benchmark::kMicrosecond)->Apply(choose_clock);
BENCHMARK(BM_RmsNormGrad)->Unit(benchmark::kMicrosecond)->Apply(choose_clock);
BENCHMARK(BM_Swiglu)->Unit(benchmark::kMicrosecond)->Apply(choose_clock);

}  // namespace
}  // namespace ropd::kernels

BENCHMARK_MAIN();
