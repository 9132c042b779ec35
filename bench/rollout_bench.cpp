// Decoding speed of the rollout engine on random weights, next to the limits of the machine measured in the
// same run: reading memory, and the packed products alone.
//   decode/SEQUENCES/CONTEXT   the Qwen3-0.6B shape in bf16, steps of the decoder and sampler at that context
//   tiny/480                   the whole engine on a 0.3M-parameter model
#include <benchmark/benchmark.h>

#include <ctime>
#include <memory>
#include <numeric>

#include "base/log.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/matmul.h"
#include "model/decode.h"
#include "rollout/engine.h"

namespace {

using namespace ropd;
using model::Precision;

// Processor seconds of this process so far, per thread.
double busy_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC / static_cast<double>(num_threads());
}

ModelConfig qwen3_600m() {
  ModelConfig c;
  c.hidden_size = 1024;
  c.intermediate_size = 3072;
  c.num_layers = 28;
  c.num_heads = 16;
  c.num_kv_heads = 8;
  c.head_dim = 128;
  c.vocab_size = 151936;
  c.max_position_embeddings = 40960;
  c.rope_theta = 1e6;
  c.tie_word_embeddings = true;
  c.has_qk_norm = true;
  return c;
}

ModelConfig tiny() {
  ModelConfig c;
  c.hidden_size = 96;
  c.intermediate_size = 256;
  c.num_layers = 3;
  c.num_heads = 4;
  c.num_kv_heads = 2;
  c.head_dim = 24;
  c.vocab_size = 64;
  c.max_position_embeddings = 1024;
  c.tie_word_embeddings = true;
  c.has_qk_norm = true;
  return c;
}

model::Parameters random_parameters(const ModelConfig& config) {
  model::Parameters parameters(config);
  for (const auto& slot : parameters.slots()) {
    const bool is_norm = slot.name.find("norm") != std::string::npos;
    float* values = parameters.values().data() + slot.offset;
    parallel_chunks(slot.size, 1 << 14, 4 * slot.size, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // A cheap hash is random enough for speed.
        const uint32_t bits = static_cast<uint32_t>(i + slot.offset) * 2654435761u;
        values[i] = is_norm ? 1.0f : 0.04f * (static_cast<float>(bits >> 8) * 0x1p-24f - 0.5f);
      }
    });
  }
  return parameters;
}

// Made once for all rows of the table. 2.4 GB of f32, of which only the embedding is read after packing.
const model::Weights& large_weights() {
  static const model::Parameters parameters = random_parameters(qwen3_600m());
  static const model::Weights packed = model::pack_weights(parameters.weights(), Precision::bf16);
  return packed;
}

size_t packed_bytes(const model::Weights& weights) {
  size_t bytes = weights.head.packed->bytes();
  for (const auto& layer : weights.layers)
    for (const model::Linear* linear :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down})
      bytes += linear->packed->bytes();
  return bytes;
}

// Seconds to read `bytes` of memory once with all threads.
double read_seconds(size_t bytes) {
  static std::vector<uint64_t> memory((size_t{1} << 30) / 8, 1);
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const double begin = busy_seconds();
    std::atomic<uint64_t> sum = 0;
    const int64_t words = static_cast<int64_t>(memory.size());
    parallel_chunks(words, 1 << 16, words, [&](int64_t first, int64_t end) {
      uint64_t part = 0;
      for (int64_t i = first; i < end; ++i) part += memory[static_cast<size_t>(i)];
      sum += part;
    });
    benchmark::DoNotOptimize(sum);
    best = std::min(best, busy_seconds() - begin);
  }
  return best * static_cast<double>(bytes) / static_cast<double>(size_t{1} << 30);
}

// Seconds of all matrix products of one step with this many rows.
double product_seconds(const model::Weights& weights, size_t rows) {
  std::vector<float> x(rows * 3072, 0.5f), y(rows * 151936);
  double best = 1e9;
  for (int round = 0; round < 2; ++round) {
    const double begin = busy_seconds();
    const auto apply = [&](const model::Linear& linear) {
      linear.apply(std::span(y).first(rows * static_cast<size_t>(linear.outputs())),
                   std::span(x).first(rows * static_cast<size_t>(linear.inputs())), Precision::bf16);
    };
    for (const auto& layer : weights.layers)
      for (const model::Linear* linear :
           {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down})
        apply(*linear);
    apply(weights.head);
    best = std::min(best, busy_seconds() - begin);
  }
  return best;
}

// One step of decoding for every sequence, all at the same context. The pages before it are zero: attention
// reads them all the same.
void decode(benchmark::State& state) {
  const size_t sequences = static_cast<size_t>(state.range(0));
  const int64_t context = state.range(1), page_tokens = 32;
  const model::Weights& weights = large_weights();
  model::Decoder decoder(weights, Precision::bf16);
  const int64_t pages_each = context / page_tokens + 2;
  model::KvCache cache(weights.config, Precision::bf16, pages_each * static_cast<int64_t>(sequences),
                       page_tokens);
  std::vector<std::vector<int32_t>> pages(sequences);
  std::vector<Token> tokens(sequences);
  for (size_t s = 0; s < sequences; ++s) {
    for (int64_t p = 0; p < pages_each; ++p) pages[s].push_back(cache.allocate());
    tokens[s] = static_cast<Token>(s * 1009);
  }
  // Untouched zero pages would share one physical page and be read from the cache of the processor.
  for (int64_t layer = 0; layer < weights.config.num_layers; ++layer) {
    const auto view = cache.layer(layer);
    const int64_t words = view.page_bytes() * view.num_pages / 2;
    parallel_chunks(words, 1 << 15, words, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += 32) static_cast<uint16_t*>(view.data)[i] = 0x3c00;
    });
  }
  std::vector<model::DecodeRows> groups(sequences);
  model::DecodeMemory step_memory;
  uint32_t position = 0;
  const rollout::SamplingConfig sampling;
  const double begin = busy_seconds();
  for (auto _ : state) {
    for (size_t s = 0; s < sequences; ++s)
      groups[s] = {std::span(tokens).subspan(s, 1), context, pages[s].data(), true};
    decoder.step(step_memory, cache, groups, [&](size_t s, std::span<float> logits) {
      tokens[s] = rollout::draw(logits, sampling, {1, s, 0, position}).token;
    });
    ++position;
  }
  state.counters["tok/s"] =
      benchmark::Counter(static_cast<double>(sequences), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["cpu_tok/s"] = static_cast<double>(sequences * position) / (busy_seconds() - begin);
  const size_t cache_bytes = sequences * static_cast<size_t>(context) *
                             model::KvCache::page_bytes(weights.config, Precision::bf16, page_tokens) /
                             page_tokens;
  const double memory = read_seconds(packed_bytes(weights) + cache_bytes);
  const double products = product_seconds(weights, sequences);
  state.counters["memory_limit"] = static_cast<double>(sequences) / memory;
  state.counters["product_limit"] = static_cast<double>(sequences) / products;
}

void tiny_engine(benchmark::State& state) {
  const model::Parameters parameters = random_parameters(tiny());
  const auto precision = state.range(1) ? Precision::bf16 : Precision::f32;
  rollout::EngineConfig config;
  config.max_response_tokens = 200;
  config.memory_bytes = uint64_t{1} << 30;
  rollout::Engine engine(parameters.weights(), precision, config);
  std::vector<rollout::Request> requests;
  for (int q = 0; q < state.range(0) / 10; ++q) {
    const auto prompt = std::make_shared<const std::vector<Token>>(std::vector<Token>(24, q % 60));
    for (uint32_t s = 0; s < 10; ++s)
      requests.push_back({"q" + std::to_string(q), s, prompt, RandomStream(1, "bench"), ""});
  }
  double tokens = 0;
  const double begin = busy_seconds();
  for (auto _ : state)
    tokens += static_cast<double>(engine.run(requests, {.on_done = [](size_t, Rollout&&) {}}).num_tokens);
  state.counters["tok/s"] = benchmark::Counter(tokens, benchmark::Counter::kIsRate);
  state.counters["cpu_tok/s"] = tokens / (busy_seconds() - begin);
  state.counters["parameters"] = static_cast<double>(model::parameter_count(tiny()));
}

// Packing the 0.6B shape from f32 master weights: what an engine does after an optimization step.
void pack(benchmark::State& state) {
  static const model::Parameters parameters = random_parameters(qwen3_600m());
  for (auto _ : state) benchmark::DoNotOptimize(model::pack_weights(parameters.weights(), Precision::bf16));
}

void sample(benchmark::State& state) {
  std::vector<float> logits(151936);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>(12 * random_uniform(1, Purpose::test, {i, 0, 0}));
  const rollout::SamplingConfig config{.top_p = static_cast<double>(state.range(0)) / 100,
                                       .top_k = state.range(1)};
  uint32_t position = 0;
  for (auto _ : state) benchmark::DoNotOptimize(rollout::draw(logits, config, {1, 2, 3, position++}));
}

BENCHMARK(sample)->Args({100, 0})->Args({95, 0})->Args({95, 20})->Unit(benchmark::kMicrosecond);
BENCHMARK(tiny_engine)->Args({480, 0})->Args({480, 1})->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(pack)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(decode)
    ->Args({1, 64})
    ->Args({8, 64})
    ->Args({32, 64})
    ->Args({64, 64})
    ->Args({8, 1024})
    ->Args({8, 4096})
    ->Args({1, 16384})
    ->Args({4, 16384})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(1.0);

}  // namespace

int main(int argument_count, char** arguments) {
  set_log_level(LogLevel::quiet);
  benchmark::Initialize(&argument_count, arguments);
  benchmark::RunSpecifiedBenchmarks();
}
