// What happens to one row of logits over the vocabulary. Every path of the program (sampling, scoring,
// training) takes its log-sum-exp from here, with one fixed order of operations: blocks of 2048 entries, in
// each the maximum and 16 partial sums, blocks combined in order. So a log-probability has the same bits
// wherever it is computed. Logits of -inf are impossible tokens and count as probability 0. Single-threaded:
// callers run rows in parallel.
#pragma once
#include <cstdint>
#include <span>

namespace ropd::kernels {

inline constexpr int64_t kVocabBlock = 2048;

// logits / temperature in place; temperature 1 changes nothing.
void divide_by_temperature(std::span<float> logits, float temperature);

float row_log_sum_exp(std::span<const float> logits);

struct RowStatistics {
  float log_sum_exp = 0;
  float entropy = 0;  // of the softmax, in nats
};

// The same log_sum_exp, built block by block so that a row can be streamed. add() takes whole blocks of
// kVocabBlock entries (the last may be shorter), in order.
class RowAccumulator {
 public:
  // Returns the maximum of the block.
  float add(std::span<const float> logits, bool with_entropy);
  RowStatistics result() const;  // entropy is 0 unless every block was added with it
  // Of what was added so far: the largest logit, and the sum of exp(logit - max()). For the sampler.
  float max() const { return max_; }
  float sum() const { return sum_; }

 private:
  float max_ = 0;
  float sum_ = 0;           // of exp(x - max_)
  float weighted_sum_ = 0;  // of exp(x - max_) (x - max_)
  bool empty_ = true, has_entropy_ = true;
};

RowStatistics row_statistics(std::span<const float> logits);

// The k largest logits of a row in descending order, ties to the lower id, streamed. Ranks by logit: the
// order of the log-probabilities before rounding.
class TopEntries {
 public:
  // Spans of k = the number wanted; filled from the front.
  TopEntries(std::span<float> values, std::span<int32_t> ids);
  // Entries with ids first_id, first_id + 1, ...; calls in ascending order. block_max is their maximum (what
  // RowAccumulator::add returned).
  void add(std::span<const float> logits, int32_t first_id, float block_max);
  int64_t count() const { return count_; }  // less than k only if fewer entries were added

 private:
  std::span<float> values_;
  std::span<int32_t> ids_;
  int64_t count_ = 0;
  void insert(float value, int32_t id);
};

// A whole row at once: its statistics, and its largest log-probabilities with their ids, as many as the spans
// hold (at most V).
RowStatistics score_row(std::span<const float> logits, std::span<float> top_logprobs,
                        std::span<int32_t> top_ids);

// y = exp(logits - log_sum_exp); y may be logits.
void row_probabilities(std::span<float> y, std::span<const float> logits, float log_sum_exp);

// Replaces logits by w * (sum_{j: ids[j] = v} coefficients[j] - pi(v) * sum_j coefficients[j]), the gradient
// at the logits of w * sum_j coefficients[j] * log pi(ids[j]).
void candidate_gradient(std::span<float> logits, std::span<const int32_t> ids,
                        std::span<const float> coefficients, float weight, float log_sum_exp);

// Replaces logits by the gradient of weight * (-log pi(target)); returns -log pi(target).
float cross_entropy_gradient(std::span<float> logits, int32_t target, float weight);

// KL(student || teacher) over the full vocabulary, summed in double; exactly 0 for equal rows.
double reverse_kl(std::span<const float> student_logits, std::span<const float> teacher_logits);

// KL(teacher || student).
double forward_kl(std::span<const float> student_logits, std::span<const float> teacher_logits);

// (1 - beta) KL(student || mix) + beta KL(teacher || mix), mix = beta teacher + (1 - beta) student, 0 < beta
// < 1.
double jensen_shannon(std::span<const float> student_logits, std::span<const float> teacher_logits,
                      float beta);

// Each replaces student_logits by weight * (gradient of the divergence at the student's logits) and returns
// the divergence.
double reverse_kl_gradient(std::span<float> student_logits, std::span<const float> teacher_logits,
                           float weight);
double forward_kl_gradient(std::span<float> student_logits, std::span<const float> teacher_logits,
                           float weight);
double jensen_shannon_gradient(std::span<float> student_logits, std::span<const float> teacher_logits,
                               float beta, float weight);

}  // namespace ropd::kernels
