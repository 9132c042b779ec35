// The random streams that responses are drawn from, by purpose. Two purposes never share draws; the same
// purpose has the same ones in every run of a seed, so runs that share a beginning share its responses. The
// names are part of the numerics contract and stand in files (`stream` of a bank's description and of
// generation.json).
#pragma once
#include <cstdint>
#include <string>

#include "base/rng.h"

namespace ropd::rollout {

// A collection round, by the optimization steps behind the student that it is sampled from.
inline RandomStream training_stream(uint64_t seed, uint64_t step) {
  return {seed, "training round at step " + std::to_string(step)};
}

inline bool is_training_stream(const RandomStream& stream) {
  return stream.name.starts_with("training round ");
}

// A bank, by what is frozen in it and by its size: a larger one does not begin with the rows of a smaller.
inline RandomStream bank_stream(uint64_t seed, const std::string& name, uint64_t responses) {
  return {seed, name + " of " + std::to_string(responses)};
}

// An evaluation, by suite and cap: the one at 16K is not the beginning of the one at 32K.
inline RandomStream evaluation_stream(uint64_t seed, const std::string& suite, int64_t max_tokens) {
  return {seed, "evaluation of " + suite + " at " + std::to_string(max_tokens) + " tokens"};
}

// Of an evaluation: two benchmarks of a suite may use the same question ids.
inline RandomStream benchmark_stream(const RandomStream& evaluation, const std::string& benchmark) {
  return {evaluation.seed, evaluation.name + ", " + benchmark};
}

// Responses whose prefixes are held fixed in diagnostics, by the policy they come from.
inline RandomStream diagnostics_stream(uint64_t seed, const std::string& source) {
  return {seed, "diagnostic prefixes of " + source};
}

}  // namespace ropd::rollout
