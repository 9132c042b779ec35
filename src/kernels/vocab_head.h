// The vocabulary head: logits = hidden . head^T for V entries, without a [tokens, V] array.
// Scoring streams blocks of rows and entries; the gradient works through chunks of rows whose logits fit into
// a bounded scratch buffer. Row results have the same bits whatever the chunks, and the gradient at the
// weights adds tokens in order.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/matmul.h"

namespace ropd::kernels {

struct ScoreRequest {
  float temperature = 1;
  int64_t top_k = 0;  // 0 = none; at most V
  bool with_entropy = false;
  std::span<const int64_t> given_begins;  // [R + 1] into given_ids, or empty: none
  std::span<const int32_t> given_ids;     // ids whose log-probabilities are wanted, row by row
};

struct VocabularyScores {
  std::vector<float> log_sum_exp;     // [R] of logits / temperature
  std::vector<float> entropy;         // [R], or empty
  std::vector<int32_t> top_ids;       // [R, top_k] by descending log-probability, ties to the lower id
  std::vector<float> top_logprobs;    // [R, top_k]
  std::vector<float> given_logprobs;  // as given_ids
};

// For the gradient's logits. On matrix units a product with few rows takes less time than packing the head for
// it, so there are more rows at a time.
constexpr size_t vocab_scratch_bytes(Precision precision) {
  return size_t{precision == Precision::bf16_tiles ? 384u : 128u} << 20;
}

// hidden [R, D], head [V, D]. Both forms give the same bits (as their products do).
VocabularyScores score_vocabulary(std::span<const float> hidden, const WeightView& head, Precision precision,
                                  const ScoreRequest& request);
VocabularyScores score_vocabulary(std::span<const float> hidden, const PackedWeight& head,
                                  const ScoreRequest& request);

// Replaces the logits [V] of a row by the gradient at them. Called once for every row, by several threads at
// a time; must not throw.
using RowObjective = std::function<void(int64_t row, std::span<float> logits)>;

// Adds to grad_hidden [R, D] and grad_weight [V, D] the gradient that row_objective leaves at the logits. An
// empty grad_hidden or grad_weight is not computed; with both empty this only shows every row's logits to
// row_objective. At most max(scratch_bytes, one row) of logits exist at a time; with bf16_tiles kTokenBlock rows,
// because there the gradient at the weights goes by sequences: rows [begin, next begin) of sequence_begins
// [B + 1], or all rows are one where it is empty.
void vocab_head_grad(std::span<float> grad_hidden, std::span<float> grad_weight,
                     std::span<const float> hidden, const WeightView& head, Precision precision,
                     std::span<const int64_t> sequence_begins, size_t scratch_bytes,
                     const RowObjective& row_objective);

// One model's side of a comparison of two.
struct HeadInput {
  std::span<const float> hidden;  // [R, D of this model]
  WeightView head;                // [V, D of this model]
  Precision precision = Precision::f32;
};

// Gets both models' logits of the same row; leaves the gradient in student_logits when gradients are wanted.
// teacher_logits is scratch.
using PairObjective =
    std::function<void(int64_t row, std::span<float> student_logits, std::span<float> teacher_logits)>;

// The two-model form, for divergences over the full vocabulary. Both heads have V rows. Empty gradients are
// not computed.
void vocab_head_pairs(std::span<float> grad_hidden, std::span<float> grad_weight, const HeadInput& student,
                      const HeadInput& teacher, std::span<const int64_t> sequence_begins,
                      size_t scratch_bytes, const PairObjective& pair_objective);

}  // namespace ropd::kernels
