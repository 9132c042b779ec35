// Draws one token from the softmax of a row of logits.
//   P(v) = exp(logits[v] / temperature - log_sum_exp)      all of it, or what top-k and then top-p leave,
//   rescaled
// The draw inverts the distribution function, in order of the ids, at one uniform number that depends on
// (seed of the stream, query, sample, position) alone. The log-probability is that of the full softmax at
// this temperature, by the row functions of kernels/vocab_rows.h, so scoring gives the same bits. Ties go to
// the lower id; -inf is an impossible token.
#pragma once
#include <cstdint>
#include <span>

#include "records/rollout.h"

namespace ropd::rollout {

struct SamplingConfig {
  double temperature = 1;
  double top_p = 1;     // the smallest set of likeliest tokens with at least this probability; 1 = all
  int64_t top_k = 0;    // the k likeliest tokens; 0 = all
  bool greedy = false;  // the likeliest token; nothing is drawn
  void validate() const;
};

// What a draw is for.
struct DrawKey {
  uint64_t seed = 0;   // RandomStream::derived_seed
  uint64_t query = 0;  // text_key of the query's id
  uint32_t sample = 0;
  uint32_t position = 0;  // within the response
};

struct Draw {
  Token token = -1;
  float logprob = 0;
  bool is_valid = true;  // false: a logit is NaN or +inf, or all are -inf; there is no token then
};

// logits [V] are divided by the temperature in place. Thread-safe.
Draw draw(std::span<float> logits, const SamplingConfig& config, const DrawKey& key);

}  // namespace ropd::rollout
