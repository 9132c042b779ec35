// Training an adapter beside training all parameters: the gradient of one response by four layers of the 0.6B
// shape, processor time of all threads. An adapter leaves out the gradients of the weights, a third of the
// operations, and merges every layer twice.
//   adapter_bench --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
#include <benchmark/benchmark.h>

#include <algorithm>

#include "distill/gradient.h"
#include "model/adapter.h"
#include "model/gradients.h"

namespace {

using namespace ropd;

ModelConfig shape() {
  ModelConfig c;
  c.hidden_size = 1024;
  c.intermediate_size = 3072;
  c.num_layers = 4;
  c.num_heads = 16;
  c.num_kv_heads = 8;
  c.head_dim = 128;
  c.vocab_size = 32000;
  c.max_position_embeddings = 4096;
  c.rope_theta = 1e6;
  c.tie_word_embeddings = true;
  c.has_qk_norm = true;
  return c;
}

// Candidates with coefficients of both signs at every position.
distill::Supervision supervision_of(const Rollout& rollout) {
  distill::Supervision s;
  s.num_candidates = 16;
  for (size_t t = 0; t < rollout.response_ids.size(); ++t) {
    s.is_valid.push_back(1);
    for (Token j = 0; j < 16; ++j) {
      s.ids.push_back(j);
      s.old_logprobs.push_back(-3.0f);
      s.coefficients.push_back(j % 2 ? 0.1f : -0.1f);
      s.teacher_logprobs.push_back(-3.0f);
    }
  }
  return s;
}

void train(benchmark::State& state, bool is_adapter, kernels::Precision precision) {
  model::Parameters parameters(shape());
  for (size_t i = 0; i < parameters.values().size(); ++i)
    parameters.values()[i] = 0.04f * static_cast<float>((i * 2654435761u >> 16) % 64) / 64 - 0.02f;
  model::Adapter adapter(shape(), {.rank = 16});
  std::ranges::fill(adapter.values(), 0.001f);
  const model::Weights all = parameters.weights(), weights = is_adapter ? adapter.on(all) : all;
  model::Gradients gradients =
      is_adapter ? model::Gradients(adapter.slots(), shape().num_layers) : model::Gradients(shape());
  Rollout rollout{.query_id = "a", .prompt_ids = {1}};
  for (Token t = 1; t < state.range(0); ++t) rollout.response_ids.push_back((t * 97) % 32000);
  const distill::Supervision supervision = supervision_of(rollout);
  const std::vector<distill::Shard> shards = {{{{&rollout, &supervision, 1e-3f}}}};
  distill::GradientMemory memory;
  for (auto _ : state)
    benchmark::DoNotOptimize(
        distill::minibatch_gradient(gradients, memory, weights, shards, {.precision = precision}));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(train, all_f32, false, kernels::Precision::f32)
    ->Arg(512)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(train, adapter_f32, true, kernels::Precision::f32)
    ->Arg(512)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(train, all_bf16, false, kernels::Precision::bf16)
    ->Arg(512)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(train, adapter_bf16, true, kernels::Precision::bf16)
    ->Arg(512)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
