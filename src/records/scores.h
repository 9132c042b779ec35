// What scoring one rollout gives, arrays over response positions: the logits that predict response token t.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "records/rollout.h"

namespace ropd {

struct Scores {
  std::string query_id;
  uint32_t sample = 0;
  uint32_t top_k = 0;
  std::vector<Token> candidates;  // [response, top_k] most likely under the student, ties to the lower id
  std::vector<float> student_logprobs;  // [response, top_k] normalised over the full vocabulary
  std::vector<float> teacher_logprobs;  // [response, top_k]; empty without a teacher; -inf where unmappable
  std::vector<float> sampled_logprobs;  // [response]
  std::vector<float> teacher_sampled_logprobs;  // [response]; empty without a teacher
  std::vector<float> student_entropy;           // [response]
  std::vector<uint8_t>
      is_aligned;              // [response]; empty = all; 0 where a cross-tokenizer teacher has no position
  std::vector<float> overlap;  // [response] share of the candidates among the teacher's own top k; or empty
};

}  // namespace ropd
