#include "stats/bootstrap.h"

#include <algorithm>
#include <cassert>

#include "base/error.h"
#include "base/rng.h"

namespace ropd::stats {
namespace {

// Mean of one resample of the values. 32 random bits choose a question; the bias of the multiplication is
// below 2^-20 for benchmarks of a few thousand questions.
double resampled_mean(std::span<const double> values, uint64_t seed, uint64_t key, uint32_t draw) {
  const uint64_t count = values.size();
  double sum = 0;
  for (uint64_t begin = 0; begin < count; begin += 4) {
    const auto bits =
        random_bits(seed, Purpose::bootstrap, {.key = key, .row = draw, .column = uint32_t(begin / 4)});
    const uint64_t end = std::min<uint64_t>(4, count - begin);
    for (uint64_t i = 0; i < end; ++i) sum += values[(uint64_t(bits[i]) * count) >> 32];
  }
  return sum / double(count);
}

Interval interval_of(std::vector<double>& draws, double estimate, double coverage) {
  std::sort(draws.begin(), draws.end());
  const double tail = (1.0 - coverage) / 2;
  return {estimate, quantile(draws, tail), quantile(draws, 1.0 - tail)};
}

}  // namespace

double quantile(std::span<const double> sorted, double share) {
  assert(!sorted.empty() && share >= 0 && share <= 1);
  const double position = share * double(sorted.size() - 1);
  const auto below = std::min(size_t(position), sorted.size() - 1);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - double(below));
}

std::vector<BenchmarkValues> subtract(std::span<const BenchmarkValues> left,
                                      std::span<const BenchmarkValues> right) {
  assert(left.size() == right.size());
  std::vector<BenchmarkValues> differences(left.begin(), left.end());
  for (size_t b = 0; b < left.size(); ++b) {
    assert(left[b].name == right[b].name && left[b].values.size() == right[b].values.size());
    for (size_t q = 0; q < left[b].values.size(); ++q) differences[b].values[q] -= right[b].values[q];
  }
  return differences;
}

BootstrapResult bootstrap(std::span<const BenchmarkValues> benchmarks, const BootstrapConfig& config) {
  if (config.draws < 100) fail("bootstrap: ", config.draws, " draws, expected at least 100");
  if (!(config.coverage > 0 && config.coverage < 1))
    fail("bootstrap: coverage ", config.coverage, ", expected between 0 and 1");
  assert(!benchmarks.empty());
  BootstrapResult result;
  std::vector<double> mean_draws(config.draws, 0.0), draws(config.draws);
  double mean_estimate = 0;
  for (const auto& [name, values] : benchmarks) {
    assert(!values.empty());
    const uint64_t key = text_key(name);
#pragma omp parallel for schedule(static)
    for (uint32_t draw = 0; draw < config.draws; ++draw)
      draws[draw] = resampled_mean(values, config.seed, key, draw);
    double estimate = 0;
    for (const double value : values) estimate += value;
    estimate /= double(values.size());
    for (uint32_t draw = 0; draw < config.draws; ++draw)
      mean_draws[draw] += draws[draw] / double(benchmarks.size());
    mean_estimate += estimate / double(benchmarks.size());
    result.benchmarks.push_back(interval_of(draws, estimate, config.coverage));
  }
  result.mean = interval_of(mean_draws, mean_estimate, config.coverage);
  return result;
}

}  // namespace ropd::stats
