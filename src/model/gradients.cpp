#include "model/gradients.h"

#include <cassert>
#include <string>
#include <unordered_map>

#include "base/parallel.h"
#include "model/weights.h"

namespace ropd::model {

Gradients::Gradients(const ModelConfig& c) {
  assert(!c.is_moe() && "mixture-of-experts models are teachers only");
  const auto slots = parameter_layout(c);
  values_.resize(static_cast<size_t>(slots.back().offset + slots.back().size));
  clear();
  std::unordered_map<std::string, std::span<float>> by_name;
  for (const ParameterSlot& slot : slots)
    by_name[slot.name] =
        values_.span().subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
  embedding_ = by_name.at("model.embed_tokens.weight");
  final_norm_ = by_name.at("model.norm.weight");
  head_ = c.tie_word_embeddings ? embedding_ : by_name.at("lm_head.weight");
  for (int64_t i = 0; i < c.num_layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    // Empty where the architecture has no such part.
    const auto of = [&](const char* name) { return by_name[layer + name]; };
    layers_.push_back({.input_norm = of("input_layernorm.weight"),
                       .q = of("self_attn.q_proj.weight"),
                       .k = of("self_attn.k_proj.weight"),
                       .v = of("self_attn.v_proj.weight"),
                       .o = of("self_attn.o_proj.weight"),
                       .q_bias = of("self_attn.q_proj.bias"),
                       .k_bias = of("self_attn.k_proj.bias"),
                       .v_bias = of("self_attn.v_proj.bias"),
                       .q_norm = of("self_attn.q_norm.weight"),
                       .k_norm = of("self_attn.k_norm.weight"),
                       .post_attention_norm = of("post_attention_layernorm.weight"),
                       .gate = of("mlp.gate_proj.weight"),
                       .up = of("mlp.up_proj.weight"),
                       .down = of("mlp.down_proj.weight")});
  }
}

void add_in_order(Gradients& sum, std::span<const Gradients> rest) {
  constexpr int64_t kBlock = 4096;  // of all of them, in the cache together
  const auto size = static_cast<int64_t>(sum.values().size());
  parallel_chunks(size, kBlock, size * static_cast<int64_t>(rest.size()), [&](int64_t begin, int64_t end) {
    float* const to = sum.values().data();
    for (const Gradients& gradients : rest) {
      const float* const from = gradients.values().data();
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    }
  });
}

}  // namespace ropd::model
