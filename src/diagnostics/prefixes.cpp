#include "diagnostics/prefixes.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/rng.h"
#include "distill/scoring.h"
#include "kernels/vocab_head.h"
#include "kernels/vocab_rows.h"
#include "model/layer_stream.h"

namespace ropd::diagnostics {
PrefixSet choose_positions(std::vector<Rollout> rollouts, uint32_t count, uint64_t seed) {
  PrefixSet set;
  for (const Rollout& rollout : rollouts) {
    const uint32_t length = static_cast<uint32_t>(rollout.response_ids.size());
    auto order = random_permutation(length, seed, Purpose::prefix_positions,
                                    text_key(rollout.query_id) + rollout.sample);
    order.resize(std::min(count, length));
    std::sort(order.begin(), order.end());
    set.positions.push_back(std::move(order));
  }
  set.rollouts = std::move(rollouts);
  return set;
}

Buffer states_at(const model::Weights& model, const PrefixSet& set) {
  std::vector<model::PromptedResponse> responses;
  for (const Rollout& rollout : set.rollouts) responses.push_back({rollout.prompt_ids, rollout.response_ids});
  model::Workspace workspace;
  return distill::states_before(model, responses, set.positions, Precision::f32, workspace, kBatchTokens);
}

std::vector<std::vector<double>> position_kl(const model::Weights& student, const model::Weights& teacher,
                                             std::span<const float> teacher_states, const PrefixSet& set) {
  const Buffer student_states = states_at(student, set);
  std::vector<double> kl(student_states.size() / static_cast<size_t>(student.config.hidden_size));
  if (teacher.stream) teacher.stream->hold_head();
  kernels::vocab_head_pairs(
      {}, {}, {student_states, student.head.stored, Precision::f32},
      {teacher_states, teacher.head.stored, Precision::f32}, {}, kernels::vocab_scratch_bytes(Precision::f32),
      [&](int64_t row, std::span<float> student_logits, std::span<float> teacher_logits) {
        kl[static_cast<size_t>(row)] = kernels::reverse_kl(student_logits, teacher_logits);
      });
  std::vector<std::vector<double>> result;
  size_t row = 0;
  for (const auto& positions : set.positions) {
    result.emplace_back(kl.begin() + static_cast<ptrdiff_t>(row),
                        kl.begin() + static_cast<ptrdiff_t>(row + positions.size()));
    row += positions.size();
  }
  return result;
}

double mean_over_responses(const std::vector<std::vector<double>>& values) {
  double sum = 0, count = 0;
  for (const auto& row : values)
    if (!row.empty()) {
      sum += std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size());
      ++count;
    }
  return count > 0 ? sum / count : 0;
}

std::vector<std::vector<double>> prefix_log_likelihood(const model::Weights& model, const PrefixSet& set) {
  model::Workspace workspace;
  const auto scores =
      distill::score_student(model, set.rollouts, {.top_k = 0, .precision = Precision::f32}, workspace);
  std::vector<std::vector<double>> result(set.rollouts.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    double sum = 0;
    size_t t = 0;
    for (const uint32_t position : set.positions[i]) {
      for (; t < position; ++t) sum += scores[i].sampled_logprobs[t];
      result[i].push_back(sum);
    }
  }
  return result;
}

LikelihoodChange likelihood_change(const PrefixSet& set, const std::vector<std::vector<double>>& before,
                                   const std::vector<std::vector<double>>& after) {
  std::vector<std::pair<double, double>> weighted;  // change, weight
  double responses = 0;
  for (size_t i = 0; i < set.positions.size(); ++i) {
    const auto non_empty = static_cast<double>(
        std::count_if(set.positions[i].begin(), set.positions[i].end(), [](uint32_t t) { return t > 0; }));
    if (non_empty == 0) continue;
    ++responses;
    for (size_t p = 0; p < set.positions[i].size(); ++p)
      if (set.positions[i][p] > 0) weighted.emplace_back(after[i][p] - before[i][p], 1 / non_empty);
  }
  std::sort(weighted.begin(), weighted.end());
  LikelihoodChange result;
  double cumulative = 0;
  constexpr size_t kPoints = 200;  // enough for a smooth curve
  for (size_t i = 0; i < weighted.size(); ++i) {
    cumulative += weighted[i].second / responses;
    if (weighted[i].first < 0) result.less_likely += weighted[i].second / responses;
    if (i + 1 == weighted.size() || (i + 1) * kPoints / weighted.size() > i * kPoints / weighted.size())
      result.cumulative.emplace_back(weighted[i].first, cumulative);
  }
  return result;
}

Concentration concentration(const std::vector<std::vector<double>>& reference,
                            const std::vector<std::vector<double>>& first,
                            const std::vector<std::vector<double>>& second, double top) {
  struct Entry {
    double reference, first, second;
  };
  std::vector<Entry> entries;
  Concentration result;
  double responses = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    for (size_t p = 0; p < reference[i].size(); ++p)
      entries.push_back({reference[i][p], first[i][p], second[i][p]});
    if (reference[i].empty()) continue;
    ++responses;
    result.responses_first_lower += std::accumulate(first[i].begin(), first[i].end(), 0.0) <
                                    std::accumulate(second[i].begin(), second[i].end(), 0.0);
  }
  if (entries.empty()) return result;
  result.responses_first_lower /= responses;
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.reference > b.reference; });
  const size_t in_top = static_cast<size_t>(top * static_cast<double>(entries.size()) + 0.5);
  double top_difference = 0, all_difference = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& e = entries[i];
    (i < in_top ? result.top_first : result.rest_first) += e.first;
    (i < in_top ? result.top_second : result.rest_second) += e.second;
    result.positions_first_lower += e.first < e.second;
    all_difference += e.second - e.first;
    if (i < in_top) top_difference += e.second - e.first;
  }
  const double top_count = static_cast<double>(std::max<size_t>(in_top, 1));
  const double rest_count = static_cast<double>(std::max<size_t>(entries.size() - in_top, 1));
  result.top_first /= top_count;
  result.top_second /= top_count;
  result.rest_first /= rest_count;
  result.rest_second /= rest_count;
  result.positions_first_lower /= static_cast<double>(entries.size());
  result.top_share = all_difference != 0 ? top_difference / all_difference : 0;
  return result;
}

}  // namespace ropd::diagnostics
