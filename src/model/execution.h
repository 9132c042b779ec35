// How the work on a model is shared out to threads, and whether its phases keep their memory. Chosen once for
// a model from its size and the machine, and carried by its Weights. It shows in speed and memory alone,
// never in a result.
#pragma once
#include <cstdint>

#include "records/model_config.h"

namespace ropd::model {

enum class Sharing {
  products,   // all threads inside every product
  sequences,  // a thread takes whole sequences (or shards of a minibatch), in parts that stay in its cache
};

struct Execution {
  Sharing sharing = Sharing::products;
  bool keeps_memory = true;  // from one use of a phase to the next; else other phases get it meanwhile
};

// memory_bytes: of the machine.
Execution choose_execution(const ModelConfig& config, uint64_t memory_bytes);

// Tokens of a part: enough rows for every weight that is read, few enough for the cache.
inline constexpr int64_t kPartTokens = 192;

}  // namespace ropd::model
