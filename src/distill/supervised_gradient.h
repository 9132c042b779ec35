// The gradient of weighted cross-entropy over given responses: what `ropd sft` minimises.
//   loss = sum_t w_t (-log pi(y_t | prompt, y_<t)) / total_weight
#pragma once
#include <span>

#include "model/training_pass.h"
#include "records/sft_example.h"

namespace ropd::distill {

struct SupervisedMicrobatch {
  std::span<const SftExample> examples;
  double total_weight = 0;  // of all tokens of the step; above zero
};

// Adds to gradients, one chain over the microbatches of a step; returns the microbatch's share of the loss. All
// threads are inside the products.
double accumulate_supervised(model::Gradients& gradients, model::TrainingPass& pass,
                             const model::Weights& weights, const SupervisedMicrobatch& microbatch,
                             kernels::Precision precision);

}  // namespace ropd::distill
