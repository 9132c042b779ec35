#include "diagnostics/probes.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>
#include <string_view>

#include "base/rng.h"
#include "stats/answer_metrics.h"

namespace ropd::diagnostics {
namespace {

// The gradient of one minibatch in one shard.
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
  const auto weight_in = [&](size_t i) {
    const bool by_sequence = config.mean == ProbeMean::sequences;
    const size_t count = by_sequence ? rollouts.size() * supervision[i].num_valid() : tokens;
    return 1.0f / static_cast<float>(std::max<size_t>(count, 1));
  };
  distill::Shard shard;
  for (const auto& [begin, end] :
       model::pack_in_order(rollouts.size(), config.microbatch_tokens, [&](size_t i) {
         return static_cast<int64_t>(rollouts[i].prompt_ids.size() + rollouts[i].response_ids.size());
       })) {
    shard.emplace_back();
    for (size_t i = begin; i < end; ++i)
      shard.back().push_back({&rollouts[i], &supervision[i], weight_in(i)});
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

// "model.layers.12." of a tensor of that layer; empty for the rest.
std::string layer_of(const std::string& name) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = name.find(kLayers);
  if (at == std::string::npos) return "";
  return name.substr(0, name.find('.', at + kLayers.size()) + 1);
}

// Tensors whose elements stand one behind the other.
struct Unit {
  std::string name;
  std::vector<model::ParameterSlot> slots;
  int64_t size = 0;
  // Of the unit's element i, in all parameters.
  int64_t coordinate(int64_t i) const {
    for (const model::ParameterSlot& slot : slots) {
      if (i < slot.size) return slot.offset + i;
      i -= slot.size;
    }
    assert(false && "an element of the unit");
    return -1;
  }
};

std::vector<Unit> units_of(const std::vector<model::ParameterSlot>& slots, ProbeUnits kind) {
  std::vector<Unit> units;
  for (const model::ParameterSlot& slot : slots) {
    const std::string name = kind == ProbeUnits::tensors ? slot.name : layer_of(slot.name);
    auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == name; });
    if (unit == units.end()) unit = units.insert(units.end(), Unit{.name = name});
    unit->slots.push_back(slot);
    unit->size += slot.size;
  }
  return units;
}

// Up to `count` distinct numbers of [begin, end), ascending.
std::set<int64_t> draw_distinct(int64_t begin, int64_t end, uint32_t count, uint64_t seed, uint64_t key) {
  std::set<int64_t> chosen;
  if (end - begin <= count) {
    for (int64_t i = begin; i < end; ++i) chosen.insert(i);
    return chosen;
  }
  // Draws until enough are distinct; a piece barely larger than the count needs a few times as many.
  for (uint32_t draw = 0; chosen.size() < count; ++draw)
    chosen.insert(begin + static_cast<int64_t>(
                              random_uniform(seed, Purpose::gradient_probe, {.key = key, .row = draw}) *
                              static_cast<double>(end - begin)));
  return chosen;
}

double norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

}  // namespace

std::vector<int64_t> probe_coordinates(const std::vector<model::ParameterSlot>& slots,
                                       const ProbeConfig& config) {
  std::vector<int64_t> result;
  const int64_t ranks = config.ranks;
  for (const Unit& unit : units_of(slots, config.units)) {
    const int64_t piece = (unit.size + ranks - 1) / ranks;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t begin = std::min(rank * piece, unit.size), end = std::min(begin + piece, unit.size);
      const uint64_t key = text_key(unit.name + "rank " + std::to_string(rank));
      for (const int64_t i : draw_distinct(begin, end, config.coordinates, config.seed, key))
        result.push_back(unit.coordinate(i));
    }
  }
  return result;
}

Probe probe_gradients(const model::Parameters& student, const model::Weights& teacher,
                      std::span<const Rollout> rollouts, const ProbeConfig& config,
                      const ProbeProgress& progress) {
  const model::Weights weights = student.weights();
  const auto coordinates = probe_coordinates(student.slots(), config);
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

std::vector<std::optional<double>> paired_cosines(const std::vector<std::vector<double>>& first,
                                                  const std::vector<std::vector<double>>& second) {
  std::vector<std::optional<double>> cosines(std::min(first.size(), second.size()));
  for (size_t m = 0; m < cosines.size(); ++m) {
    double product = 0, first_square = 0, second_square = 0;
    for (size_t i = 0; i < first[m].size(); ++i) {
      const double a = first[m][i], b = second[m][i];
      product += a * b;
      first_square += a * a;
      second_square += b * b;
    }
    if (first_square > 0 && second_square > 0) cosines[m] = product / std::sqrt(first_square * second_square);
  }
  return cosines;
}

PairedCosine paired_cosine(const Probe& first, const Probe& second) {
  std::vector<double> cosines;
  for (const auto& cosine : paired_cosines(first.coordinates, second.coordinates))
    if (cosine) cosines.push_back(*cosine);
  if (cosines.empty()) return {};
  const auto summary = stats::mean_and_deviation(cosines);
  return {summary.mean, summary.deviation / std::sqrt(static_cast<double>(cosines.size())), cosines.size()};
}

}  // namespace ropd::diagnostics
