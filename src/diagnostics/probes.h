// Gradient probes (method.md section 10): a fixed model's gradient on trajectories of some source, minibatch
// by minibatch, with candidates and probabilities computed anew and no update. How large is it, and do two
// sources pull the same way?
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "distill/gradient.h"
#include "distill/scoring.h"

namespace ropd::diagnostics {

// How tokens weigh in the gradient of a minibatch of n trajectories: each trajectory's token mean, divided by
// n (as on the paper's eight ranks, one trajectory each), or one mean over all tokens.
enum class ProbeMean { sequences, tokens };

// What coordinates are chosen from: flat parameters as a sharding trainer keeps them, one for every layer and
// one for the rest, or every tensor by itself; each cut into as many pieces as there are ranks. The paper
// says 3,712 coordinates, 16 of each tensor and rank: 29 flat parameters of Qwen3-0.6B's 28 layers, 8 ranks.
enum class ProbeUnits { layers, tensors };

struct ProbeConfig {
  uint32_t minibatch = 8;  // trajectories of one gradient
  ProbeMean mean = ProbeMean::sequences;
  ProbeUnits units = ProbeUnits::layers;
  uint32_t ranks = 8;
  uint32_t coordinates = 16;  // kept of every unit and rank, for cosines
  uint64_t seed = 1;          // of their choice
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

// Coordinates of the flat parameters. A unit's tensors stand one behind the other; rank r of R has its
// elements [r c, (r + 1) c), c = size / R rounded up, and up to `coordinates` of them are drawn, by seed, unit and
// rank alone: in order of units and ranks, ascending in each.
std::vector<int64_t> probe_coordinates(const std::vector<model::ParameterSlot>& slots,
                                       const ProbeConfig& config);

// Cosine of the gradients of two sources, minibatch i with minibatch i.
struct PairedCosine {
  double mean = 0;
  double standard_error = 0;
  size_t pairs = 0;  // those where both gradients are not zero
};
PairedCosine paired_cosine(const Probe& first, const Probe& second);
// [minibatches] the same one by one, from the coordinates that were kept; nothing where one gradient is zero.
std::vector<std::optional<double>> paired_cosines(const std::vector<std::vector<double>>& first,
                                                  const std::vector<std::vector<double>>& second);

}  // namespace ropd::diagnostics
