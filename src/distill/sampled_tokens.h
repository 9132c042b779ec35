// The tokens of a scored response as text, with the log-probabilities of student and teacher: what a
// ResponseSample shows.
#pragma once
#include <vector>

#include "records/response_sample.h"
#include "records/scores.h"
#include "text/tokenizer.h"

namespace ropd::distill {

// The texts of all tokens together are the response; a character cut by the border of two tokens stands with
// the second one. Special tokens are shown. Of a response longer than max_tokens the beginning; candidates
// for the first max_with_candidates of these.
std::vector<SampleToken> sampled_tokens(const Rollout& rollout, const Scores& scores,
                                        const text::Tokenizer& tokenizer, size_t max_tokens,
                                        size_t max_with_candidates);

}  // namespace ropd::distill
