#include "model/workspace.h"

#include <algorithm>

#include "model/rope_frequencies.h"

namespace ropd::model {

const kernels::RopeTable& Workspace::rope_for(const ModelConfig& config, int64_t num_positions) {
  if (num_positions > rope.num_positions) {
    // Some room to grow, so that sequences that get longer one by one do not rebuild the table each time.
    const int64_t wanted =
        std::max(num_positions, std::min(2 * num_positions, config.max_position_embeddings));
    const RopeFrequencies frequencies = rope_frequencies(config);
    rope = kernels::make_rope_table(wanted, frequencies.inverse, frequencies.factor);
  }
  return rope;
}

void Workspace::provide_threads(size_t count) {
  while (of_threads.size() < count) of_threads.push_back(std::make_unique<Workspace>());
}

}  // namespace ropd::model
