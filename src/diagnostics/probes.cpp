#include "diagnostics/probes.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/rng.h"
#include "stats/answer_metrics.h"

namespace ropd::diagnostics {
namespace {

// The gradient of one minibatch in one shard, every valid token with the same weight.
void probe_minibatch(model::Gradients& gradients, distill::GradientMemory& memory,
                     const model::Weights& student, const model::Weights& teacher,
                     std::span<const Rollout> rollouts, std::span<const Scores> scores,
                     const ProbeConfig& config, model::Workspace& teacher_workspace) {
  std::vector<distill::Supervision> supervision;
  size_t tokens = 0;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    supervision.push_back(distill::supervise(scores[i], rollouts[i], config.objective));
    tokens += supervision.back().num_valid();
  }
  const float weight = 1.0f / static_cast<float>(std::max<size_t>(tokens, 1));
  distill::Shard shard;
  for (const auto& [begin, end] :
       model::pack_in_order(rollouts.size(), config.microbatch_tokens, [&](size_t i) {
         return static_cast<int64_t>(rollouts[i].prompt_ids.size() + rollouts[i].response_ids.size());
       })) {
    shard.emplace_back();
    for (size_t i = begin; i < end; ++i) shard.back().push_back({&rollouts[i], &supervision[i], weight});
  }
  distill::minibatch_gradient(gradients, memory, student, std::span(&shard, 1),
                              {.objective = config.objective,
                               .precision = config.scoring.precision,
                               .old_is_current = true,
                               .trace_budget_bytes = config.trace_budget_bytes},
                              [&](std::span<const distill::TrainingItem> items) {
                                return distill::teacher_rows(teacher, items, config.scoring.precision,
                                                             teacher_workspace);
                              });
}

double norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

}  // namespace

std::vector<int64_t> probe_coordinates(const std::vector<model::ParameterSlot>& slots, uint32_t count,
                                       uint64_t seed) {
  std::vector<int64_t> result;
  for (const model::ParameterSlot& slot : slots) {
    if (slot.size <= count) {
      for (int64_t i = 0; i < slot.size; ++i) result.push_back(slot.offset + i);
      continue;
    }
    // Draws until enough are distinct; a tensor barely larger than the count needs a few times as many.
    std::set<int64_t> chosen;
    for (uint32_t draw = 0; chosen.size() < count; ++draw)
      chosen.insert(static_cast<int64_t>(
          random_uniform(seed, Purpose::gradient_probe, {.key = text_key(slot.name), .row = draw}) *
          static_cast<double>(slot.size)));
    for (const int64_t i : chosen) result.push_back(slot.offset + i);
  }
  return result;
}

Probe probe_gradients(const model::Parameters& student, const model::Weights& teacher,
                      std::span<const Rollout> rollouts, const ProbeConfig& config,
                      const ProbeProgress& progress) {
  const model::Weights weights = student.weights();
  const auto coordinates = probe_coordinates(student.slots(), config.coordinates, config.seed);
  model::Gradients gradients(student.config());
  distill::GradientMemory memory;
  model::Workspace workspace, teacher_workspace;  // a rope table each
  const auto used = rollouts.first(rollouts.size() / config.minibatch * config.minibatch);
  auto scores = distill::score_student(weights, used, config.scoring, workspace);
  distill::score_teacher(scores, teacher, used, config.scoring, teacher_workspace);
  Probe probe;
  for (size_t begin = 0; begin < used.size(); begin += config.minibatch) {
    probe_minibatch(gradients, memory, weights, teacher, used.subspan(begin, config.minibatch),
                    std::span(scores).subspan(begin, config.minibatch), config, teacher_workspace);
    probe.norms.push_back(norm(gradients.values()));
    std::vector<double>& kept = probe.coordinates.emplace_back();
    for (const int64_t i : coordinates) kept.push_back(gradients.values()[static_cast<size_t>(i)]);
    if (progress && !progress(probe.norms.size())) break;
  }
  return probe;
}

PairedCosine paired_cosine(const Probe& first, const Probe& second) {
  std::vector<double> cosines;
  for (size_t m = 0; m < std::min(first.coordinates.size(), second.coordinates.size()); ++m) {
    double product = 0, first_square = 0, second_square = 0;
    for (size_t i = 0; i < first.coordinates[m].size(); ++i) {
      const double a = first.coordinates[m][i], b = second.coordinates[m][i];
      product += a * b;
      first_square += a * a;
      second_square += b * b;
    }
    if (first_square > 0 && second_square > 0)
      cosines.push_back(product / std::sqrt(first_square * second_square));
  }
  if (cosines.empty()) return {};
  const auto summary = stats::mean_and_deviation(cosines);
  return {summary.mean, summary.deviation / std::sqrt(static_cast<double>(cosines.size())), cosines.size()};
}

}  // namespace ropd::diagnostics
