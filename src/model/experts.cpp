#include "model/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/elementary.h"
#include "kernels/swiglu.h"
#include "tensor/buffer.h"

namespace ropd::model {
namespace {

struct Choice {
  int64_t token;
  float weight;
};

// For every expert the tokens that chose it, in order.
std::vector<std::vector<Choice>> route(std::span<const float> router_logits, const ModelConfig& config) {
  const int64_t num_experts = config.num_experts;
  const int64_t tokens = static_cast<int64_t>(router_logits.size()) / num_experts;
  std::vector<std::vector<Choice>> chosen(static_cast<size_t>(num_experts));
  std::vector<int64_t> order(static_cast<size_t>(num_experts));
  std::vector<float> probability(static_cast<size_t>(num_experts));
  for (int64_t token = 0; token < tokens; ++token) {
    const float* logits = router_logits.data() + token * num_experts;
    const float highest = *std::max_element(logits, logits + num_experts);
    float sum = 0;
    for (int64_t e = 0; e < num_experts; ++e) sum += probability[e] = kernels::exp(logits[e] - highest);
    for (float& p : probability) p /= sum;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + config.num_experts_per_token, order.end(),
                      [&](int64_t a, int64_t b) {
                        return probability[a] != probability[b] ? probability[a] > probability[b] : a < b;
                      });
    float kept = 0;
    for (int64_t i = 0; i < config.num_experts_per_token; ++i) kept += probability[order[i]];
    for (int64_t i = 0; i < config.num_experts_per_token; ++i)
      chosen[order[i]].push_back(
          {token, config.norm_topk_prob ? probability[order[i]] / kept : probability[order[i]]});
  }
  return chosen;
}

}  // namespace

void mixture_of_experts(std::span<float> x, std::span<const float> normed, const LayerWeights& weights,
                        const ModelConfig& config, Precision precision) {
  const size_t width = static_cast<size_t>(config.hidden_size),
               inner = static_cast<size_t>(config.moe_intermediate_size);
  const size_t tokens = normed.size() / width;
  Buffer router_logits(tokens * static_cast<size_t>(config.num_experts));
  // The router decides which experts run at all: always in f32, so that precision cannot flip a choice by
  // itself.
  weights.router.apply(router_logits, normed, Precision::f32);
  const auto chosen = route(router_logits, config);

  Buffer mixed(x.size()), rows, gate, up, out;
  mixed.fill(0);
  for (size_t e = 0; e < chosen.size(); ++e) {
    const auto& choices = chosen[e];
    if (choices.empty()) continue;
    const Expert& expert = weights.experts[e];
    rows.resize(choices.size() * width);
    gate.resize(choices.size() * inner);
    up.resize(choices.size() * inner);
    out.resize(choices.size() * width);
    for (size_t i = 0; i < choices.size(); ++i)
      std::copy_n(normed.data() + choices[i].token * width, width, rows.data() + i * width);
    expert.gate.apply(gate, rows, precision);
    expert.up.apply(up, rows, precision);
    kernels::swiglu(gate, gate.span(), up);
    expert.down.apply(out, gate, precision);
    for (size_t i = 0; i < choices.size(); ++i) {
      float* to = mixed.data() + choices[i].token * width;
      const float* from = out.data() + i * width;
      for (size_t d = 0; d < width; ++d) to[d] = std::fma(choices[i].weight, from[d], to[d]);
    }
  }
  kernels::add(x, mixed);
}

}  // namespace ropd::model
