#include "app/trial_work.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "app/pattern_weights.h"
#include "base/parallel.h"

namespace ropd::app {
namespace {

constexpr int64_t kPage = 32;
constexpr Token kAnyToken = 7;

// Sixteen candidates with coefficients of both signs at every position.
distill::Supervision constant_supervision(const Rollout& rollout) {
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

// Small numbers everywhere. Pages that were never written are all one page of zeros to the system, which the
// processor's cache holds, however long the context.
void write_pages(model::KvCache& cache, int64_t num_layers) {
  constexpr int kByte = 0x3c;  // 0.01 in both types
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    const kernels::KvPageView view = cache.layer(layer);
    parallel_chunks(view.num_pages, 1, view.num_pages * view.page_bytes(), [&](int64_t begin, int64_t end) {
      std::memset(static_cast<std::byte*>(view.data) + begin * view.page_bytes(), kByte,
                  static_cast<size_t>((end - begin) * view.page_bytes()));
    });
  }
}

}  // namespace

std::vector<Rollout> made_rollouts(int64_t vocab_size, size_t count, size_t length) {
  std::vector<Rollout> result(count);
  for (size_t i = 0; i < count; ++i) {
    result[i].query_id = std::to_string(i);
    result[i].prompt_ids = {1};
    for (size_t t = 0; t < length; ++t)
      result[i].response_ids.push_back(
          static_cast<Token>((i * 131 + t * 7) % static_cast<size_t>(vocab_size)));
  }
  return result;
}

DecodeTrial::DecodeTrial(const model::Decoder& decoder, const ModelConfig& config, int64_t count,
                         int64_t context)
    : decoder_(decoder),
      rounds_(decoder.weights().execution),
      cache_(config, decoder.precision(), count * (context / kPage + 1), kPage),
      pages_(static_cast<size_t>(count)) {
  for (auto& table : pages_) {
    for (int64_t i = 0; i < context / kPage + 1; ++i) table.push_back(cache_.allocate());
    rows_.push_back({std::span(&kAnyToken, 1), context, table.data(), true});
  }
  write_pages(cache_, config.num_layers);
}

void DecodeTrial::run(int steps) {
  while (steps > 0) {
    const size_t workers = round_.num_workers;
    if (round_.num_steps < static_cast<int64_t>(workers)) {  // a round goes on from call to call
      round_ = rounds_.next(rows_.size());
      continue;
    }
    const int64_t steps_each = std::min<int64_t>(steps, round_.num_steps / static_cast<int64_t>(workers));
    if (memories_.size() < workers) memories_.resize(workers);
    round_.run([&](size_t worker) {
      const size_t first = rows_.size() * worker / workers, last = rows_.size() * (worker + 1) / workers;
      for (int64_t i = 0; i < steps_each; ++i)
        decoder_.step(memories_[worker], cache_, std::span(rows_).subspan(first, last - first),
                      [](size_t, std::span<float>) {});
    });
    steps -= static_cast<int>(steps_each);
    round_.num_steps -= steps_each * static_cast<int64_t>(workers);
  }
}

GradientTrial::GradientTrial(const ModelConfig& config, std::vector<Rollout> batch, size_t num_shards,
                             const distill::GradientConfig& gradient_config, bool is_adapter,
                             distill::GradientMemory& memory)
    : gradient_config_(gradient_config), batch_(std::move(batch)), memory_(memory) {
  for (const Rollout& rollout : batch_) supervision_.push_back(constant_supervision(rollout));
  const size_t sequences = (batch_.size() + num_shards - 1) / num_shards;
  for (size_t i = 0; i < batch_.size(); ++i) {
    if (i % sequences == 0) shards_.push_back({{}});
    shards_.back().front().push_back({&batch_[i], &supervision_[i], 1e-3f});
  }
  if (is_adapter) {
    base_ = pattern_weights(config, DType::bf16, 0.02f);
    adapter_ = std::make_unique<model::Adapter>(config, AdapterConfig{.rank = 16});
    std::ranges::fill(adapter_->values(), 0.001f);
    weights_ = adapter_->on(base_);
    gradients_ = std::make_unique<model::Gradients>(adapter_->slots(), config.num_layers);
  } else {
    parameters_ = std::make_unique<model::Parameters>(config);
    fill_pattern(parameters_->values(), 0.02f);
    weights_ = parameters_->weights();
    gradients_ = std::make_unique<model::Gradients>(config);
  }
  // A minibatch of a run has many microbatches between getting its memory and giving it back.
  weights_.execution.keeps_memory = true;
}

void GradientTrial::run() {
  (void)distill::minibatch_gradient(*gradients_, memory_, weights_, shards_, gradient_config_);
}

}  // namespace ropd::app
