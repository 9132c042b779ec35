#include "distill/gradient.h"

#include <algorithm>
#include <cassert>

#include "distill/scoring.h"
#include "kernels/vocab_head.h"

namespace ropd::distill {
namespace {

// Where each response position of a microbatch is found: row of the packed batch, item, position.
struct RowOrigin {
  int64_t batch_row;
  uint32_t item;
  uint32_t position;
};

std::vector<RowOrigin> response_rows(std::span<const TrainingItem> items,
                                     std::span<const int64_t> first_rows) {
  std::vector<RowOrigin> origins;
  for (uint32_t i = 0; i < items.size(); ++i)
    for (uint32_t t = 0; t < items[i].rollout->response_ids.size(); ++t)
      origins.push_back({first_rows[i] + t, i, t});
  std::sort(origins.begin(), origins.end(),
            [](const RowOrigin& a, const RowOrigin& b) { return a.batch_row < b.batch_row; });
  return origins;
}

// The teacher's states in the order of the rows of the packed batch.
Buffer in_batch_order(const TeacherRows& teacher, std::span<const TrainingItem> items,
                      std::span<const RowOrigin> origins) {
  const size_t width = static_cast<size_t>(teacher.head.columns);
  std::vector<size_t> first_rows = {0};
  for (const TrainingItem& item : items)
    first_rows.push_back(first_rows.back() + item.rollout->response_ids.size());
  assert(teacher.states.size() == first_rows.back() * width);
  Buffer states(origins.size() * width);
  for (size_t r = 0; r < origins.size(); ++r)
    std::copy_n(teacher.states.data() + (first_rows[origins[r].item] + origins[r].position) * width, width,
                states.data() + r * width);
  return states;
}

Position position_of(const RowOrigin& origin, std::span<const TrainingItem> items, bool old_is_current) {
  const TrainingItem& item = items[origin.item];
  const Supervision& s = *item.supervision;
  const size_t k = s.num_candidates, at = origin.position * k;
  return {std::span(s.ids).subspan(at, k),
          std::span(s.old_logprobs).subspan(at, k),
          std::span(s.coefficients).subspan(at, k),
          std::span(s.teacher_logprobs).subspan(at, k),
          s.is_valid[origin.position] ? item.token_weight : 0.0f,
          old_is_current};
}

}  // namespace

MicrobatchResult& MicrobatchResult::operator+=(const MicrobatchResult& other) {
  weighted_loss += other.weighted_loss;
  tokens += other.tokens;
  clipped += other.clipped;
  dual_clipped += other.dual_clipped;
  clamped += other.clamped;
  terms += other.terms;
  policy_kl += other.policy_kl;
  return *this;
}

TeacherRows teacher_rows(const model::Weights& teacher, std::span<const TrainingItem> items,
                         kernels::Precision precision, model::Workspace& workspace) {
  std::vector<model::PromptedResponse> responses;
  for (const TrainingItem& item : items)
    responses.push_back({item.rollout->prompt_ids, item.rollout->response_ids});
  return {predicting_states(teacher, responses, precision, workspace), teacher.head.stored, precision};
}

MicrobatchResult accumulate_gradient(model::Gradients& gradients, model::TrainingPass& pass,
                                     const model::Weights& student, std::span<const TrainingItem> items,
                                     const GradientConfig& config, kernels::Precision precision,
                                     const TeacherRows& teacher) {
  std::vector<model::PromptedResponse> responses;
  for (const TrainingItem& item : items)
    responses.push_back({item.rollout->prompt_ids, item.rollout->response_ids});
  // A prefix keeps the traces of all its layers until the sequences behind it are done: little for a small
  // model, which goes through a sequence at a time.
  const bool is_small = model::stays_in_cache(student.config);
  const auto [batch, first_rows] =
      model::pack_responses(responses, is_small ? model::Prompts::shared : model::Prompts::each_its_own);
  const auto origins = response_rows(items, first_rows);
  std::vector<int64_t> rows;
  for (const RowOrigin& origin : origins) rows.push_back(origin.batch_row);
  std::vector<PositionResult> results(origins.size());
  const auto position = [&](size_t row) { return position_of(origins[row], items, config.old_is_current); };
  if (config.objective.needs_full_teacher()) {
    const size_t width = static_cast<size_t>(teacher.head.columns);
    const Buffer teacher_states = in_batch_order(teacher, items, origins);
    pass.accumulate(
        gradients, batch, rows,
        [&](std::span<float> grad_states, std::span<float> grad_head, std::span<const float> states,
            size_t first) {
          const size_t count = states.size() / static_cast<size_t>(student.config.hidden_size);
          kernels::vocab_head_pairs(
              grad_states, grad_head, {states, student.head.stored, precision},
              {teacher_states.span().subspan(first * width, count * width), teacher.head, teacher.precision},
              config.head_scratch_bytes,
              [&](int64_t row, std::span<float> student_logits, std::span<float> teacher_logits) {
                const size_t r = first + static_cast<size_t>(row);
                results[r] =
                    full_position_gradient(student_logits, teacher_logits, position(r), config.objective);
              });
        });
  } else {
    pass.accumulate(gradients, batch, rows,
                    [&](std::span<float> grad_states, std::span<float> grad_head,
                        std::span<const float> states, size_t first) {
                      kernels::vocab_head_grad(
                          grad_states, grad_head, states, student.head.stored, precision,
                          config.head_scratch_bytes, [&](int64_t row, std::span<float> logits) {
                            const size_t r = first + static_cast<size_t>(row);
                            results[r] = position_gradient(logits, position(r), config.objective);
                          });
                    });
  }

  MicrobatchResult sum;
  for (size_t r = 0; r < origins.size(); ++r) {
    const TrainingItem& item = items[origins[r].item];
    if (!item.supervision->is_valid[origins[r].position]) continue;
    ++sum.tokens;
    sum.weighted_loss += item.token_weight * results[r].loss;
    sum.clipped += results[r].clipped;
    sum.dual_clipped += results[r].dual_clipped;
    sum.clamped += results[r].clamped;
    sum.terms += results[r].terms;
    sum.policy_kl += results[r].policy_kl;
  }
  return sum;
}

}  // namespace ropd::distill
