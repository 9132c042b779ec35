#include "distill/gradient.h"

#include <algorithm>
#include <cassert>

#include "kernels/vocab_head.h"

namespace ropd::distill {
namespace {

// Where each response position of a microbatch is found: row of the packed batch, item, position.
struct RowOrigin {
  int64_t batch_row;
  uint32_t item;
  uint32_t position;
};

std::vector<RowOrigin> response_rows(std::span<const TrainingItem> items) {
  std::vector<RowOrigin> origins;
  int64_t begin = 0;
  for (uint32_t i = 0; i < items.size(); ++i) {
    const Rollout& rollout = *items[i].rollout;
    for (uint32_t t = 0; t < rollout.response_ids.size(); ++t)
      origins.push_back({begin + static_cast<int64_t>(rollout.prompt_ids.size()) - 1 + t, i, t});
    begin += static_cast<int64_t>(rollout.prompt_ids.size() + rollout.response_ids.size());
  }
  return origins;
}

Buffer gather(std::span<const float> hidden, const std::vector<RowOrigin>& origins, size_t width) {
  Buffer rows(origins.size() * width);
  for (size_t r = 0; r < origins.size(); ++r)
    std::copy_n(hidden.data() + static_cast<size_t>(origins[r].batch_row) * width, width,
                rows.data() + r * width);
  return rows;
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

MicrobatchResult accumulate_gradient(model::Gradients& gradients, model::TrainingPass& pass,
                                     const model::Weights& student, std::span<const TrainingItem> items,
                                     const GradientConfig& config, kernels::Precision precision,
                                     const FullTeacher& teacher) {
  model::PackedBatch batch;
  for (const TrainingItem& item : items) batch.append(item.rollout->prompt_ids, item.rollout->response_ids);
  const auto origins = response_rows(items);
  const size_t width = static_cast<size_t>(student.config.hidden_size);
  const Buffer rows = gather(pass.forward(batch), origins, width);
  Buffer grad_rows(rows.size());
  grad_rows.fill(0);

  std::vector<PositionResult> results(origins.size());
  if (config.objective.needs_full_teacher()) {
    assert(teacher.weights && teacher.workspace);
    const size_t teacher_width = static_cast<size_t>(teacher.weights->config.hidden_size);
    Buffer hidden(batch.tokens.size() * teacher_width);
    model::forward(hidden, *teacher.weights, batch, teacher.precision, *teacher.workspace);
    const Buffer teacher_rows = gather(hidden, origins, teacher_width);
    kernels::vocab_head_pairs(
        grad_rows, gradients.head(), {rows, student.head.stored, precision},
        {teacher_rows, teacher.weights->head.stored, teacher.precision}, config.head_scratch_bytes,
        [&](int64_t row, std::span<float> student_logits, std::span<float> teacher_logits) {
          const auto r = static_cast<size_t>(row);
          results[r] =
              full_position_gradient(student_logits, teacher_logits,
                                     position_of(origins[r], items, config.old_is_current), config.objective);
        });
  } else {
    kernels::vocab_head_grad(grad_rows, gradients.head(), rows, student.head.stored, precision,
                             config.head_scratch_bytes, [&](int64_t row, std::span<float> logits) {
                               const auto r = static_cast<size_t>(row);
                               results[r] = position_gradient(
                                   logits, position_of(origins[r], items, config.old_is_current),
                                   config.objective);
                             });
  }

  Buffer grad_hidden(batch.tokens.size() * width);
  grad_hidden.fill(0);
  MicrobatchResult sum;
  for (size_t r = 0; r < origins.size(); ++r) {
    std::copy_n(grad_rows.data() + r * width, width,
                grad_hidden.data() + static_cast<size_t>(origins[r].batch_row) * width);
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
  pass.backward(gradients, grad_hidden, batch);
  return sum;
}

}  // namespace ropd::distill
