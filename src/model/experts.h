// The feed-forward part of a mixture-of-experts layer (Qwen3-MoE): a softmax router picks a few experts for
// every token.
//   x += sum_{e in top-k} weight_e * down_e · (silu(gate_e) * up_e),   experts in ascending order
// Ties in the router go to the lower expert. Forward only.
#pragma once
#include <span>

#include "model/weights.h"

namespace ropd::model {

// Adds to x [T, D] what the chosen experts make of normed [T, D].
void mixture_of_experts(std::span<float> x, std::span<const float> normed, const LayerWeights& weights,
                        const ModelConfig& config, Precision precision);

}  // namespace ropd::model
