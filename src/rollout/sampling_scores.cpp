#include "rollout/sampling_scores.h"

#include "kernels/vocab_rows.h"

namespace ropd::rollout {

SamplingScores::SamplingScores(size_t num_requests, uint32_t top_k) : scores_(num_requests) {
  for (Scores& scores : scores_) scores.top_k = top_k;
}

void SamplingScores::add(size_t request, Token token, std::span<const float> logits) {
  Scores& scores = scores_[request];
  const size_t at = scores.candidates.size(), k = scores.top_k;
  scores.candidates.resize(at + k);
  scores.student_logprobs.resize(at + k);
  const auto statistics = kernels::score_row(logits, std::span(scores.student_logprobs).subspan(at),
                                             std::span(scores.candidates).subspan(at));
  scores.sampled_logprobs.push_back(logits[static_cast<size_t>(token)] - statistics.log_sum_exp);
  scores.student_entropy.push_back(statistics.entropy);
}

}  // namespace ropd::rollout
