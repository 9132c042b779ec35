#include "model/gradients.h"

#include <string>
#include <unordered_map>

#include "base/parallel.h"
#include "io/adapter_directory.h"

namespace ropd::model {

Gradients::Gradients(std::vector<ParameterSlot> slots, int64_t num_layers) : slots_(std::move(slots)) {
  values_.resize(static_cast<size_t>(slots_.back().offset + slots_.back().size));
  clear();
  std::unordered_map<std::string, std::span<float>> by_name;
  for (const ParameterSlot& slot : slots_)
    by_name[slot.name] =
        values_.span().subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
  embedding_ = by_name["model.embed_tokens.weight"];
  final_norm_ = by_name["model.norm.weight"];
  head_ = by_name.contains("lm_head.weight") ? by_name["lm_head.weight"] : embedding_;
  for (int64_t i = 0; i < num_layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    // Empty where the architecture has no such part, or where it is frozen.
    const auto of = [&](const char* name) { return by_name[layer + name]; };
    const auto matrix = [&](const std::string& name) -> MatrixGradient {
      return {.whole = by_name[layer + name + ".weight"],
              .a = by_name[io::lora_a_name(layer + name)],
              .b = by_name[io::lora_b_name(layer + name)]};
    };
    layers_.push_back({.q = matrix("self_attn.q_proj"),
                       .k = matrix("self_attn.k_proj"),
                       .v = matrix("self_attn.v_proj"),
                       .o = matrix("self_attn.o_proj"),
                       .gate = matrix("mlp.gate_proj"),
                       .up = matrix("mlp.up_proj"),
                       .down = matrix("mlp.down_proj"),
                       .input_norm = of("input_layernorm.weight"),
                       .q_bias = of("self_attn.q_proj.bias"),
                       .k_bias = of("self_attn.k_proj.bias"),
                       .v_bias = of("self_attn.v_proj.bias"),
                       .q_norm = of("self_attn.q_norm.weight"),
                       .k_norm = of("self_attn.k_norm.weight"),
                       .post_attention_norm = of("post_attention_layernorm.weight")});
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
