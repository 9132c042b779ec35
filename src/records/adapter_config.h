// What a low-rank adapter changes and by how much: some matrices W [N, K] of a model become
//   W + scale · (B A)    with A [r, K], B [N, r] and scale = alpha / r, or alpha / sqrt(r) (rank-stabilised)
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ropd {

struct AdapterConfig {
  int64_t rank = 16;
  double alpha = 32;
  bool rslora = false;
  // Modules by their last names, q_proj or layers.3.mlp.up_proj; empty: every projection (PEFT's all-linear).
  std::vector<std::string> targets;
  // For modules whose name ends so, instead of `rank` and `alpha`.
  std::map<std::string, int64_t> ranks;
  std::map<std::string, double> alphas;

  bool operator==(const AdapterConfig&) const = default;
};

// One adapted matrix.
struct AdapterMatrix {
  std::string module;  // model.layers.0.self_attn.q_proj
  int64_t outputs = 0, inputs = 0;
  int64_t rank = 0;
  float scale = 0;

  bool operator==(const AdapterMatrix&) const = default;
};

}  // namespace ropd
