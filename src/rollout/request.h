// What the rollout engine is asked for.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "records/rollout.h"

namespace ropd::rollout {

// One response to a prompt. Requests that hold the same prompt object share its keys and values.
struct Request {
  std::string query_id;
  uint32_t sample = 0;
  std::shared_ptr<const std::vector<Token>> prompt;
  RandomStream stream;  // its draws (rollout/streams.h)
  std::string answer;   // passed on to the rollout
};

}  // namespace ropd::rollout
