#include "distill/supervised_gradient.h"

#include <utility>

#include "kernels/vocab_head.h"
#include "kernels/vocab_rows.h"

namespace ropd::distill {

double accumulate_supervised(model::Gradients& gradients, model::TrainingPass& pass,
                             const model::Weights& weights, const SupervisedMicrobatch& microbatch,
                             kernels::Precision precision) {
  std::vector<model::PromptedResponse> responses;
  for (const SftExample& example : microbatch.examples)
    responses.push_back({example.prompt_ids, example.response_ids});
  auto [batch, first_rows] = model::pack_responses(responses, model::Prompts::each_its_own);
  std::vector<int64_t> rows;
  std::vector<int32_t> targets;
  std::vector<float> row_weights;
  for (size_t i = 0; i < microbatch.examples.size(); ++i) {
    const SftExample& example = microbatch.examples[i];
    for (size_t t = 0; t < example.response_ids.size(); ++t)
      if (example.loss_weights[t] != 0) {
        rows.push_back(first_rows[i] + static_cast<int64_t>(t));
        targets.push_back(example.response_ids[t]);
        row_weights.push_back(static_cast<float>(example.loss_weights[t] / microbatch.total_weight));
      }
  }
  const auto states = pass.forward(weights, std::move(batch), std::move(rows));
  Buffer grad_states(states.size());
  grad_states.fill(0);
  std::vector<double> losses(targets.size());
  kernels::vocab_head_grad(
      grad_states, gradients.head(), states, weights.head.stored, precision, pass.row_begins(),
      kernels::vocab_scratch_bytes(precision), [&](int64_t row, std::span<float> logits) {
        const auto r = static_cast<size_t>(row);
        losses[r] = row_weights[r] *
                    static_cast<double>(kernels::cross_entropy_gradient(logits, targets[r], row_weights[r]));
      });
  pass.backward(gradients, grad_states);
  pass.finish(gradients);
  double loss = 0;
  for (const double l : losses) loss += l;
  return loss;
}

}  // namespace ropd::distill
