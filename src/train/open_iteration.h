// An iteration between scoring and its last update: what is fixed for all its minibatches. Part of a
// checkpoint that is taken in the middle, because candidates, coefficients and the old policy cannot be
// computed again once the weights have moved.
#pragma once
#include <vector>

#include "base/file.h"
#include "distill/supervision.h"
#include "records/metrics.h"
#include "records/rollout.h"
#include "records/scores.h"
#include "train/minibatch.h"

namespace ropd::train {

struct OpenIteration {
  std::vector<Rollout> rollouts;  // in the order of the split
  std::vector<uint32_t> source;   // [rollouts]
  // Of rollouts [first_supervised, first_supervised + size): all of them, or one minibatch when each is
  // scored on its own. Empty until they are scored.
  std::vector<distill::Supervision> supervision;
  size_t first_supervised = 0;
  IterationRecord record;  // what is known so far; its steps are kept by the metrics, not by a checkpoint
  // not saved
  uint64_t minibatches = 0;     // done; saved in state.json
  std::vector<Scores> sampled;  // [rollouts] the student's side, until it is used; empty: not known

  DistillationMeans means;  // of what is supervised

  // Its rollouts must be supervised.
  std::vector<ScoredRollout> minibatch(const MinibatchRange& range) const;
};

// Writes open_rollouts.jsonl, open_supervision.safetensors and open_record.jsonl into a checkpoint folder.
// Exact both ways.
void save_open_iteration(const Path& folder, const OpenIteration& open);
// Fails, naming the file, when its parts do not fit each other or an id is outside the vocabulary.
OpenIteration load_open_iteration(const Path& folder, int64_t vocab_size);

}  // namespace ropd::train
