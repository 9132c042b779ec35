// One sampled response and how it was made; not changed after the engine returns it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ropd {

using Token = int32_t;

enum class Finish { eos, length };

struct Rollout {
  std::string query_id;
  uint32_t sample = 0;
  std::vector<Token> prompt_ids;
  std::vector<Token> response_ids;  // the first EOS included, nothing after it
  Finish finish = Finish::length;
  uint64_t policy_step = 0;  // optimization step of the weights that sampled it
  uint64_t seed = 0;
  std::optional<std::string> text;      // decoded response, special tokens removed; where it was decoded
  std::string answer;                   // of the query, for grading
  std::vector<float> sampled_logprobs;  // [response], when sampled; empty if not asked for
};

}  // namespace ropd
