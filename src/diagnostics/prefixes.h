// Fixed prefixes (method.md section 10): responses of one policy and positions in them, held fixed while
// several students are scored on them. Separates whether a state is still visited from whether the student
// agrees with the teacher there.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/forward.h"
#include "records/rollout.h"

namespace ropd::diagnostics {

using kernels::Precision;

inline constexpr int64_t kBatchTokens = 8192;  // of a pass

struct PrefixSet {
  std::vector<Rollout> rollouts;
  // [rollouts] ascending; position t is the state before response token t
  std::vector<std::vector<uint32_t>> positions;
};

// Up to `count` positions of every response, uniform without replacement, by seed, query and sample alone.
PrefixSet choose_positions(std::vector<Rollout> rollouts, uint32_t count, uint64_t seed);

// The states of a model at the chosen positions, in f32 products: [sum of positions, D].
Buffer states_at(const model::Weights& model, const PrefixSet& set);

// KL(student || teacher) over the full vocabulary at every chosen position, in f32 products:
// [rollouts][positions]. teacher_states: those of states_at().
std::vector<std::vector<double>> position_kl(const model::Weights& student, const model::Weights& teacher,
                                             std::span<const float> teacher_states, const PrefixSet& set);

// Positions weigh equally within a response, responses weigh equally.
double mean_over_responses(const std::vector<std::vector<double>>& values);

// log pi(y_<t | x) at every chosen position: [rollouts][positions]; 0 for t = 0.
std::vector<std::vector<double>> prefix_log_likelihood(const model::Weights& model, const PrefixSet& set);

struct LikelihoodChange {
  double less_likely = 0;  // share of non-empty prefixes, responses weigh equally
  // change, response-weighted share at or below it; ascending
  std::vector<std::pair<double, double>> cumulative;
};
LikelihoodChange likelihood_change(const PrefixSet& set, const std::vector<std::vector<double>>& before,
                                   const std::vector<std::vector<double>>& after);

// Rank positions by KL under a reference; how two models differ on the top tenth and on the rest.
struct Concentration {
  double top_first = 0, top_second = 0;    // mean KL on the top group
  double rest_first = 0, rest_second = 0;  // and on the rest
  double top_share = 0;                    // of the signed sum of differences second - first
  double positions_first_lower = 0;        // share of positions where the first model is lower
  double responses_first_lower = 0;        // share of response means likewise
};
Concentration concentration(const std::vector<std::vector<double>>& reference,
                            const std::vector<std::vector<double>>& first,
                            const std::vector<std::vector<double>>& second, double top = 0.1);

}  // namespace ropd::diagnostics
