// One supervised example: given prompt, given response, and how much the loss of each response token counts.
#pragma once
#include <vector>

#include "records/rollout.h"

namespace ropd {

struct SftExample {
  std::vector<Token> prompt_ids;
  std::vector<Token> response_ids;  // EOS included when the response ends
  std::vector<float> loss_weights;  // [response]; 0 = context only
};

}  // namespace ropd
