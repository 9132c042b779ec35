#include "model/execution.h"

#include "model/weights.h"

namespace ropd::model {

Execution choose_execution(const ModelConfig& config, uint64_t memory_bytes) {
  // Weights that stay in the cache: there a barrier after every product costs more than the product.
  constexpr uint64_t kCacheBytes = 16 << 20;
  // From this share of the machine on fresh pages cost nothing beside the work on them; with small models
  // they would cost a tenth of an iteration.
  constexpr uint64_t kNoticeableShare = 32;
  const uint64_t bytes = static_cast<uint64_t>(parameter_count(config)) * sizeof(float);
  return {.sharing = bytes <= kCacheBytes ? Sharing::sequences : Sharing::products,
          .keeps_memory = bytes < memory_bytes / kNoticeableShare};
}

}  // namespace ropd::model
