// Weights of a real size that behave like a trained model's without being trained: responses end, next-token
// distributions are far from flat, a teacher and a student of different width agree in part.
//
// Tied embeddings give logits_v = e_v . norm(x). Some dimensions of the residual stream are set by hand:
//   0            a constant, large: the norms' denominators hardly change (trained models have such, too)
//   1            layer 0 writes a constant; e_v holds a log-frequency there: Zipf's law over token ids
//   2 .. 2+K     e_v holds z_v, what the token is as context (K = 64)
//   2+K .. 2+2K  layer 0 copies z of the current token here; e_v holds z'_v, what the token is as a
//                continuation: a bigram model of rank K, in which student and teacher agree
//   the rest     ordinary random weights with the sizes of trained ones; attention and MLPs of all layers add
//                a context-dependent part to the logits, each model its own
// SwiGLU with a gate that sees only the constant is linear, which is how layer 0 writes and copies. The end
// token has no z'; its log-frequency is set so that a walk through the bigram model ends after a given number
// of tokens on average. Special tokens and ids without a token never come.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "records/model_config.h"
#include "tensor/dtype.h"

namespace ropd::rehearsal {

struct MadeModelSettings {
  uint64_t seed = 1;         // of what is the model's own; the bigram model is the same for all
  double mean_length = 400;  // tokens until the end, of the walk
  double sharpness = 6;      // standard deviation of the bigram logits
  double noise = 1;          // of the logits' own part, added by the layers
};

// What a walk of some hundred tokens through the bigram model shows.
struct Expectation {
  double entropy = 0;  // nats
  double top16_mass = 0;
  double end_log_frequency = 0;
};

// Qwen3 with tied embeddings and Qwen's vocabulary. Constant after construction; thread-safe.
class MadeModel {
 public:
  MadeModel(const ModelConfig& config, const MadeModelSettings& settings);
  // Whole rows of a tensor from first_row on; a vector is one row.
  void fill(std::span<Bf16> out, const std::string& tensor, int64_t columns, int64_t first_row) const;
  const Expectation& expectation() const { return expectation_; }

 private:
  const ModelConfig config_;
  const MadeModelSettings settings_;
  std::vector<float> normal_;  // [65536] quantiles of the normal distribution
  Expectation expectation_;

  double log_frequency(int64_t token) const;
  float shared_normal(uint64_t kind, int64_t token, int64_t k) const;
  float continuation(int64_t token, int64_t k) const;
  void walk();
  double random_size(const std::string& part) const;
  void set_embedding_row(std::span<Bf16> row, int64_t token) const;
  void set_norm(std::span<Bf16> weights, const std::string& part) const;
  void set_first_mlp_row(std::span<Bf16> row, const std::string& part, int64_t index) const;
};

}  // namespace ropd::rehearsal
