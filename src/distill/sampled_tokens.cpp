#include "distill/sampled_tokens.h"

#include <algorithm>
#include <cmath>

#include "text/streaming_decoder.h"

namespace ropd::distill {
namespace {

std::optional<double> at(const std::vector<float>& values, size_t index) {
  if (index >= values.size() || !std::isfinite(values[index])) return std::nullopt;
  return values[index];
}

}  // namespace

std::vector<SampleToken> sampled_tokens(const Rollout& rollout, const Scores& scores,
                                        const text::Tokenizer& tokenizer, size_t max_tokens,
                                        size_t max_with_candidates) {
  std::vector<SampleToken> tokens;
  text::StreamingDecoder decoder(tokenizer, /*skip_special=*/false);
  const size_t count = std::min(rollout.response_ids.size(), max_tokens), k = scores.top_k;
  for (size_t t = 0; t < count; ++t) {
    const Token id = rollout.response_ids[t];
    SampleToken token{
        {decoder.push(id), id, at(scores.sampled_logprobs, t), at(scores.teacher_sampled_logprobs, t)}, {}};
    for (size_t i = t * k; t < max_with_candidates && i < (t + 1) * k; ++i)
      token.candidates.push_back(
          {tokenizer.decode(std::span(&scores.candidates[i], 1), /*skip_special=*/false),
           scores.candidates[i], at(scores.student_logprobs, i), at(scores.teacher_logprobs, i)});
    tokens.push_back(std::move(token));
  }
  if (!tokens.empty()) tokens.back().chosen.text += decoder.finish();
  return tokens;
}

}  // namespace ropd::distill
