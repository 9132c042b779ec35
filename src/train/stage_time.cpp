#include "train/stage_time.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/kv_cache.h"

namespace ropd::train {
namespace {

constexpr double kUsualPrompt = 128;  // tokens of a question with its template
constexpr double kMostAtATime = 96;   // sequences of a large model (rollout/engine.cpp)

// Operations a token of attention beyond what the trials had: theirs looked back over half of kTrialTokens.
double attention_operations(const ModelConfig& c, double context) {
  return 4 * static_cast<double>(c.num_layers * c.num_heads * c.head_dim) *
         std::max(0.0, context - static_cast<double>(kTrialTokens) / 2);
}

// The scale with which responses cut at `longest` have that mean: mean / longest = (1 - e^-r) / r with r = longest / scale.
double scale_of_lengths(double mean, double longest) {
  if (mean >= longest) return std::numeric_limits<double>::infinity();
  double low = 0, high = longest / mean;
  for (int i = 0; i < 100; ++i) {
    const double r = (low + high) / 2;
    (-std::expm1(-r) > r * mean / longest ? low : high) = r;
  }
  return longest / high;
}

double step_seconds(const StageSpeeds& speeds, double sequences) {
  const auto& points = speeds.decode;
  for (size_t i = 1; i < points.size(); ++i)
    if (sequences <= points[i].sequences) {
      const double share =
          (sequences - points[i - 1].sequences) / (points[i].sequences - points[i - 1].sequences);
      return points[i - 1].seconds + share * (points[i].seconds - points[i - 1].seconds);
    }
  return points.back().seconds * std::max(1.0, sequences / points.back().sequences);
}

}  // namespace

ResponseLengths::ResponseLengths(double mean_length, double most)
    : mean(mean_length), longest(std::max(mean_length, most)), scale(scale_of_lengths(mean, longest)) {
  const double r = longest / scale;
  look_back = std::isinf(scale) ? longest / 2 : scale * scale * (1 - std::exp(-r) * (1 + r)) / mean;
}

double usual_prompt_tokens(const TrainConfig& config) {
  return std::min(kUsualPrompt, static_cast<double>(config.data.max_prompt_tokens));
}

double block_parameters(const ModelConfig& c) {
  double sum = 0;
  for (int64_t layer = 0; layer < c.num_layers; ++layer) {
    const int64_t attention = c.head_dim * (2 * c.num_heads + 2 * c.num_kv_heads);
    const bool is_moe = c.is_moe() && c.is_moe_layer[static_cast<size_t>(layer)];
    const int64_t inner = is_moe ? c.moe_intermediate_size * c.num_experts_per_token : c.intermediate_size;
    sum += static_cast<double>(c.hidden_size * (attention + 3 * inner));
  }
  return sum;
}

double head_parameters(const ModelConfig& c) { return static_cast<double>(c.vocab_size * c.hidden_size); }

StageSpeeds guessed_speeds(const ModelConfig& student, const ModelConfig& teacher, double flops,
                           bool is_adapter) {
  const auto pass = [&](const ModelConfig& c, double passes) {
    return PassSpeed{2 * passes * block_parameters(c) / flops, 2 * passes * head_parameters(c) / flops};
  };
  StageSpeeds speeds{.student = pass(student, 1),
                     .teacher = pass(teacher, 1),
                     .attention_flops = flops,
                     .attention_grad_flops = flops};
  speeds.update = pass(student, is_adapter ? 2 : 3);
  const double parameters = block_parameters(student) + head_parameters(student),
               reading = 2 * parameters / speeds.memory_bytes;
  for (const double sequences : {1.0, 8.0, 32.0, 64.0})
    speeds.decode.push_back({sequences, std::max(reading, 2 * sequences * parameters / flops)});
  return speeds;
}

double sampling_seconds(const TrainConfig& config, const ModelConfig& student, const StageSpeeds& speeds,
                        double responses, double response_tokens) {
  constexpr int64_t kPage = 32;
  const double prompt = usual_prompt_tokens(config),
               longest = static_cast<double>(config.rollout.max_response_tokens);
  const ResponseLengths lengths(std::min(response_tokens, longest), longest);
  const double token_bytes =
      static_cast<double>(model::KvCache::page_bytes(student, config.rollout.precision, kPage)) / kPage;
  double at_a_time = std::min(responses, kMostAtATime);
  if (const auto& memory = config.rollout.memory_gb.value)
    at_a_time =
        std::clamp(*memory * 1e9 / (token_bytes * (prompt + lengths.mean)), 1.0, std::max(at_a_time, 1.0));
  at_a_time = std::floor(at_a_time);
  const auto step = [&](double sequences) {
    return step_seconds(speeds, sequences) +
           sequences * (prompt + lengths.look_back) * token_bytes / speeds.memory_bytes;
  };
  // As long as others wait, one that ends makes place for the next. Then j sequences are left for a time of scale / j,
  // which is how lengths without memory end, up to the longest that is allowed.
  double seconds = (responses - at_a_time) * lengths.mean / at_a_time * step(at_a_time);
  double left = longest;
  for (double j = at_a_time; j >= 1 && left > 0; --j) {
    const double steps = std::min(left, lengths.scale / j);
    seconds += steps * step(j);
    left -= steps;
  }
  return seconds + responses * prompt * speeds.student.blocks;
}

StageSeconds stage_seconds(const TrainConfig& config, const ModelConfig& student, const ModelConfig& teacher,
                           const StageSpeeds& speeds, const StageWork& work) {
  const double responses = static_cast<double>(config.train.responses_per_iteration),
               tokens = responses * work.response_tokens, prompt = usual_prompt_tokens(config),
               positions = tokens + responses * prompt;
  const ResponseLengths lengths(work.response_tokens,
                                static_cast<double>(config.rollout.max_response_tokens));
  const double context = prompt + lengths.look_back;
  const auto pass = [&](const PassSpeed& speed, const ModelConfig& c) {
    return positions * (speed.blocks + attention_operations(c, context) / speeds.attention_flops) +
           tokens * speed.head;
  };
  StageSeconds seconds;
  const bool samples = needs_sampling(config);
  if (samples) seconds.sampling = sampling_seconds(config, student, speeds, responses, work.response_tokens);
  // Where sampling and training round alike, the scores of sampling are used.
  const bool scores_while_sampling = samples && config.rollout.precision == config.train.precision &&
                                     config.train.rescore == Rescore::iteration;
  if (!scores_while_sampling) seconds.student = pass(speeds.student, student);
  seconds.teacher = pass(speeds.teacher, teacher);
  seconds.updates =
      pass(speeds.update, student) +
      kAttentionGradShare * positions * attention_operations(student, context) / speeds.attention_grad_flops +
      work.recomputed_layers * pass({speeds.student.blocks, 0}, student);
  const double steps = static_cast<double>(steps_per_iteration(config)),
               shards = static_cast<double>(std::min(config.train.shards, config.train.minibatch));
  // AdamW reads four vectors and writes three, a shard's gradient is added, the trigger has two vectors.
  const double vectors = 7 + 3 * shards + (work.is_watched ? 6 : 0);
  seconds.updates += steps * (vectors * 4 * static_cast<double>(work.parameters) / speeds.memory_bytes +
                              static_cast<double>(work.scratch_bytes) / speeds.disk_bytes);
  return seconds;
}

}  // namespace ropd::train
