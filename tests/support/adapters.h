// Small random adapters, and the same weights merged by plain loops in double precision.
#pragma once
#include <vector>

#include "base/rng.h"
#include "model/adapter.h"

namespace ropd::test {

// A and B both away from zero.
inline model::Adapter random_adapter(const ModelConfig& base, const AdapterConfig& config, uint64_t seed,
                                     float scale = 0.3f) {
  model::Adapter adapter(base, config);
  for (size_t i = 0; i < adapter.values().size(); ++i)
    adapter.values()[i] = static_cast<float>(
        scale * (2 * random_uniform(seed, Purpose::test, {.key = 77, .row = static_cast<uint32_t>(i)}) - 1));
  return adapter;
}

// W + scale · (B A) of one matrix; a and b are its parameters, w the base.
inline std::vector<double> merged_in_double(const AdapterMatrix& m, const std::vector<double>& w,
                                            const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> merged = w;
  for (int64_t n = 0; n < m.outputs; ++n)
    for (int64_t k = 0; k < m.inputs; ++k) {
      double sum = 0;
      for (int64_t r = 0; r < m.rank; ++r)
        sum += b[static_cast<size_t>(n * m.rank + r)] * a[static_cast<size_t>(r * m.inputs + k)];
      merged[static_cast<size_t>(n * m.inputs + k)] += static_cast<double>(m.scale) * sum;
    }
  return merged;
}

}  // namespace ropd::test
