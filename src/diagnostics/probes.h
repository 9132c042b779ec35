// Gradient probes (method.md section 10): a fixed model's gradient on trajectories of some source, minibatch
// by minibatch, with candidates and probabilities computed anew and no update. How large is it, and do two
// sources pull the same way?
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "distill/gradient.h"
#include "distill/scoring.h"

namespace ropd::diagnostics {

struct ProbeConfig {
  uint32_t minibatch = 8;     // trajectories of one gradient
  uint32_t coordinates = 16;  // kept of every parameter tensor, for cosines
  uint64_t seed = 1;          // of the choice of coordinates
  distill::ScoringConfig scoring;
  distill::ObjectiveConfig objective;
  int64_t microbatch_tokens = 8192;
  size_t trace_budget_bytes = size_t{1} << 30;
};

struct Probe {
  std::vector<double> norms;                     // [minibatches] over all parameters
  std::vector<std::vector<double>> coordinates;  // [minibatches][kept]; the same coordinates for every source
};

// The whole minibatches of `rollouts`, in order; a rest is left out. All are scored first: a teacher that is
// streamed passes by as seldom as it can. Called after each minibatch: those done. False from it ends the probe
// early.
using ProbeProgress = std::function<bool(size_t minibatches)>;
Probe probe_gradients(const model::Parameters& student, const model::Weights& teacher,
                      std::span<const Rollout> rollouts, const ProbeConfig& config,
                      const ProbeProgress& progress = {});

// Coordinates of the flat parameters: up to `count` of every tensor, ascending, by seed and name alone.
std::vector<int64_t> probe_coordinates(const std::vector<model::ParameterSlot>& slots, uint32_t count,
                                       uint64_t seed);

// Cosine of the gradients of two sources, minibatch i with minibatch i.
struct PairedCosine {
  double mean = 0;
  double standard_error = 0;
  size_t pairs = 0;  // those where both gradients are not zero
};
PairedCosine paired_cosine(const Probe& first, const Probe& second);

}  // namespace ropd::diagnostics
