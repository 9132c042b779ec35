#include "app/stage_speeds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "app/pattern_weights.h"
#include "app/trial_work.h"
#include "base/memory_info.h"
#include "distill/scoring.h"
#include "kernels/attention.h"
#include "kernels/limits.h"
#include "train/plan.h"

namespace ropd::app {
namespace {

using kernels::Precision;
using train::block_parameters, train::head_parameters, train::kTrialTokens;

constexpr int64_t kMostRows = 16384;   // of a trial's vocabulary
constexpr double kDecodedBytes = 4e8;  // of weights: more than caches hold, where the model has so many
constexpr double kLargest = 4e9, kPart = 0.25;  // bytes of a trial, and of the free memory

// The first layers, with the first tokens of the vocabulary, and with room for a trial where a model has few positions.
ModelConfig part_of(const ModelConfig& config, int64_t layers) {
  ModelConfig part = config;
  part.max_position_embeddings = std::max(config.max_position_embeddings, 2 * kTrialTokens);
  part.num_layers = std::min(layers, config.num_layers);
  part.vocab_size = std::min(config.vocab_size, kMostRows);
  if (part.is_moe()) part.is_moe_layer.resize(static_cast<size_t>(part.num_layers));
  return part;
}

// Once for memory and caches, then the mean of what there is time for.
double seconds_of(const std::function<void()>& work) {
  constexpr double kEnough = 0.2;
  work();
  double seconds = 0;
  int times = 0;
  for (; times == 0 || seconds < kEnough; ++times) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return seconds / times;
}

// time(part): seconds of the work over kTrialTokens tokens of a part of the model. The difference between three
// layers and one is that of two layers, and what is left of one is the head.
train::PassSpeed extrapolate(const ModelConfig& config,
                             const std::function<double(const ModelConfig&)>& time) {
  constexpr int64_t kMore = 3;
  const double one = time(part_of(config, 1)) / kTrialTokens;
  if (config.num_layers == 1) return {one, 0};
  const ModelConfig larger = part_of(config, kMore);
  const double more = time(larger) / kTrialTokens,
               layer = std::max(0.0, more - one) / static_cast<double>(larger.num_layers - 1),
               head = std::max(0.0, one - layer);
  return {layer * static_cast<double>(config.num_layers),
          head * head_parameters(config) / head_parameters(larger)};
}

double scoring_time(const ModelConfig& part, Precision precision, DType stored) {
  const auto weights = pattern_weights(part, stored, 0.02f);
  const auto batch = made_rollouts(part.vocab_size, 1, kTrialTokens);
  model::Workspace workspace;
  return seconds_of([&] {
    (void)distill::score_student(weights, batch, {.top_k = 16, .precision = precision}, workspace);
  });
}

double gradient_time(const ModelConfig& part, Precision precision, bool is_adapter) {
  distill::GradientMemory memory;
  GradientTrial trial(part, made_rollouts(part.vocab_size, 1, kTrialTokens), 1, {.precision = precision},
                      is_adapter, memory);
  return seconds_of([&] { trial.run(); });
}

int64_t decoded_layers(const ModelConfig& config, Precision precision) {
  const double layer =
      block_parameters(config) / static_cast<double>(config.num_layers) * (is_bf16(precision) ? 2 : 4);
  return std::clamp<int64_t>(static_cast<int64_t>(kDecodedBytes / layer), 1, config.num_layers);
}

// Steps take as long as the weights that they read, or multiply, are many.
std::vector<train::DecodeSpeed> measure_decoding(const ModelConfig& config, Precision precision,
                                                 double most_sequences) {
  const ModelConfig part = part_of(config, decoded_layers(config, precision));
  const double scale =
      (block_parameters(config) + head_parameters(config)) / (block_parameters(part) + head_parameters(part));
  const auto weights = pattern_weights(part, DType::bf16, 0.02f);
  const model::Decoder decoder(model::pack_weights(weights, precision), precision);
  constexpr int64_t kShort = 32;
  std::vector<train::DecodeSpeed> speeds;
  for (const int64_t sequences : {1, 4, 8, 16, 32, 64}) {
    DecodeTrial trial(decoder, part, sequences, kShort);
    speeds.push_back({static_cast<double>(sequences), scale * seconds_of([&] { trial.run(1); })});
    if (static_cast<double>(sequences) >= most_sequences) break;
  }
  return speeds;
}

// One layer's, over a sequence several times as long as those of the other trials.
void measure_attention(train::StageSpeeds& speeds, const ModelConfig& config) {
  constexpr int64_t kTokens = 4 * kTrialTokens;
  const kernels::AttentionShape shape{config.num_heads, config.num_kv_heads, config.head_dim,
                                      1 / std::sqrt(static_cast<float>(config.head_dim))};
  const auto rows = [&](int64_t width) {
    return std::vector<float>(static_cast<size_t>(kTokens * width), 0.1f);
  };
  const int64_t queries = shape.num_heads * shape.head_dim, keys = shape.num_kv_heads * shape.head_dim;
  const auto q = rows(queries), k = rows(keys), v = rows(keys);
  auto out = rows(queries), log_sum_exp = rows(shape.num_heads), grad_q = q, grad_k = k, grad_v = v;
  const int64_t begins[] = {0, kTokens};
  const double operations = 4 * static_cast<double>(queries) * kTokens * kTokens / 2;
  speeds.attention_flops =
      operations / seconds_of([&] { kernels::attention(out, log_sum_exp, q, k, v, begins, shape); });
  speeds.attention_grad_flops =
      train::kAttentionGradShare * operations / seconds_of([&] {
        kernels::attention_grad(grad_q, grad_k, grad_v, q, out, log_sum_exp, q, k, v, begins, shape);
      });
}

// Weights, gradients and traces of the largest trial.
double trial_bytes(const ModelConfig& student, const ModelConfig& teacher, Precision rollouts) {
  const auto parameters = [](const ModelConfig& part) {
    return static_cast<double>(model::parameter_count(part));
  };
  return std::max({12 * parameters(part_of(student, 3)), 2 * parameters(part_of(teacher, 3)),
                   4 * parameters(part_of(student, decoded_layers(student, rollouts)))});
}

}  // namespace

std::optional<train::StageSpeeds> measure_stages(const train::TrainConfig& config) {
  const train::PlannedModels models = train::read_shapes(config);
  const double available = static_cast<double>(read_memory_info().available_bytes);
  if (trial_bytes(models.student, models.teacher, config.rollout.precision) >
      std::min(kLargest, kPart * available))
    return std::nullopt;
  const auto stored = [](const ModelConfig& c) { return c.dtype == "float32" ? DType::f32 : DType::bf16; };
  train::StageSpeeds speeds;
  speeds.student = extrapolate(models.student, [&](const ModelConfig& part) {
    return scoring_time(part, config.train.precision, config.adapter ? stored(part) : DType::f32);
  });
  speeds.teacher = extrapolate(models.teacher, [&](const ModelConfig& part) {
    return scoring_time(part, config.train.teacher_precision, stored(part));
  });
  speeds.update = extrapolate(models.student, [&](const ModelConfig& part) {
    return gradient_time(part, config.train.precision, config.adapter.has_value());
  });
  if (needs_sampling(config))
    speeds.decode = measure_decoding(models.student, config.rollout.precision,
                                     static_cast<double>(config.train.responses_per_iteration));
  measure_attention(speeds, models.student);
  constexpr double kSeconds = 0.3;
  speeds.memory_bytes = kernels::measure_reading(kSeconds).sustained;
  return speeds;
}

}  // namespace ropd::app
