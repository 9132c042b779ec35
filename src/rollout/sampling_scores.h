// The student's scores of responses while they are sampled (records/scores.h): the logits that a token is drawn from
// are those that scoring finds when it reads the finished response in the same precision, bit for bit.
#pragma once
#include <span>
#include <vector>

#include "records/scores.h"

namespace ropd::rollout {

// Requests are numbered; for each of them one thread at a time.
class SamplingScores {
 public:
  SamplingScores(size_t num_requests, uint32_t top_k);
  // The next token of a response, and the logits, divided by the temperature, from which it was drawn.
  void add(size_t request, Token token, std::span<const float> logits);
  // Of a response that was sampled whole; without query and sample.
  Scores take(size_t request) { return std::move(scores_[request]); }

 private:
  std::vector<Scores> scores_;
};

}  // namespace ropd::rollout
