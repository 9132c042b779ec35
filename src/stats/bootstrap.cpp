#include "stats/bootstrap.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "stats/answer_metrics.h"
#include "stats/distributions.h"

namespace ropd::stats {
namespace {

// `count` numbers below `count`, drawn with replacement. 32 random bits choose one; the bias of the
// multiplication is below 2^-20 for benchmarks of a few thousand questions.
void resample(std::span<uint32_t> chosen, uint64_t seed, uint64_t key, uint32_t draw, uint32_t first_column) {
  const uint64_t count = chosen.size();
  for (uint64_t begin = 0; begin < count; begin += 4) {
    const auto bits = random_bits(seed, Purpose::bootstrap,
                                  {.key = key, .row = draw, .column = first_column + uint32_t(begin / 4)});
    for (uint64_t i = 0; i < std::min<uint64_t>(4, count - begin); ++i)
      chosen[begin + i] = uint32_t((uint64_t(bits[i]) * count) >> 32);
  }
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

// The draws of one contrast on one benchmark, or of its mean over benchmarks.
struct Draws {
  std::vector<double> questions, both;  // [draws]
};

// Fills draws[contrast] for one benchmark.
void draw_benchmark(std::vector<Draws>& draws, std::span<const Contrast> contrasts, size_t benchmark,
                    const BootstrapConfig& config) {
  const BenchmarkValues& shape = contrasts[0][0].runs[0][benchmark];
  const uint64_t key = text_key(shape.name), runs_key = text_key("runs of a group");
  constexpr int64_t kDrawsAtOnce = 64, kWorkEach = 64;
  const int64_t work = kWorkEach * config.draws * static_cast<int64_t>(shape.values.size());
  parallel_chunks(config.draws, kDrawsAtOnce, work, [&](int64_t first, int64_t last) {
    std::vector<uint32_t> questions(shape.values.size()), runs;
    for (auto draw = static_cast<uint32_t>(first); draw < last; ++draw) {
      resample(questions, config.seed, key, draw, 0);
      for (size_t c = 0; c < contrasts.size(); ++c) {
        double kept = 0, both = 0;
        for (size_t g = 0; g < contrasts[c].size(); ++g) {
          const RunGroup& group = contrasts[c][g];
          const size_t num_runs = group.runs.size();
          runs.resize(num_runs);
          resample(runs, config.seed, runs_key, draw, uint32_t(g << 16));
          for (size_t r = 0; r < num_runs; ++r) {
            const auto& values = group.runs[r][benchmark].values;
            double sum = 0;
            for (const uint32_t question : questions) sum += values[question];
            const double part = group.weight * sum / double(values.size()) / double(num_runs);
            kept += part;
            both += part * double(std::count(runs.begin(), runs.end(), r));
          }
        }
        draws[c].questions[draw] = kept;
        draws[c].both[draw] = both;
      }
    }
  });
}

// Squared standard error and degrees of freedom of a contrast over some of the benchmarks, from variance
// components. With question means q_i and run means m_r of a group of R runs and Q questions:
//   question part  var(q_i) / Q       contains the residual once
//   run part       var(m_r) / R       contains it again
//   residual       var(x_ri - q_i - m_r) / (R Q)
struct Uncertainty {
  double variance = 0;
  double spread = 0;  // sum of part^2 / degrees, Satterthwaite's denominator

  void add(double part, double sign, double degrees) {
    variance += sign * part;
    spread += part * part / degrees;
  }
  double degrees() const {
    return spread > 0 ? variance * variance / spread : std::numeric_limits<double>::infinity();
  }
};

double sum_of_squares(std::span<const double> values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

// The contrast of every question of a benchmark, over the groups' mean runs.
std::vector<double> question_values(const Contrast& contrast, size_t benchmark) {
  std::vector<double> values(contrast[0].runs[0][benchmark].values.size(), 0.0);
  for (const RunGroup& group : contrast)
    for (const RunValues& run : group.runs)
      for (size_t q = 0; q < values.size(); ++q)
        values[q] += group.weight * run[benchmark].values[q] / double(group.runs.size());
  return values;
}

// Adds what the runs of a group contribute beyond the residual that the question part already holds.
void add_runs(Uncertainty& total, const RunGroup& group, std::span<const size_t> benchmarks) {
  const size_t num_runs = group.runs.size();
  if (num_runs < 2) return;
  const double weight = group.weight * group.weight,
               share = 1.0 / double(benchmarks.size() * benchmarks.size());
  std::vector<double> run_means(num_runs, 0.0);
  Uncertainty residual;
  for (const size_t b : benchmarks) {
    const auto questions = question_values({{1.0, group.runs}}, b);
    const double grand = mean_of(questions), degrees = double(questions.size() - 1) * double(num_runs - 1);
    double squares = 0;
    for (size_t r = 0; r < num_runs; ++r) {
      const auto& values = group.runs[r][b].values;
      const double mean = mean_of(values);
      run_means[r] += mean / double(benchmarks.size());
      for (size_t q = 0; q < values.size(); ++q)
        squares += std::pow(values[q] - questions[q] - mean + grand, 2);
    }
    if (degrees > 0)
      residual.add(weight * share * squares / degrees / double(questions.size() * num_runs), 1, degrees);
  }
  const double runs = weight * sum_of_squares(run_means) / double(num_runs - 1) / double(num_runs);
  if (runs <= residual.variance) return;
  total.add(runs, 1, double(num_runs - 1));
  total.variance -= residual.variance;
  total.spread += residual.spread;
}

Uncertainty uncertainty_of(const Contrast& contrast, std::span<const size_t> benchmarks) {
  Uncertainty total;
  for (const size_t b : benchmarks) {
    const auto values = question_values(contrast, b);
    if (values.size() < 2) continue;
    const double degrees = double(values.size() - 1);
    const double share = 1.0 / double(benchmarks.size() * benchmarks.size());
    total.add(share * sum_of_squares(values) / degrees / double(values.size()), 1, degrees);
  }
  for (const RunGroup& group : contrast) add_runs(total, group, benchmarks);
  return total;
}

Interval percentiles(std::vector<double>& draws, double estimate, double tail) {
  std::sort(draws.begin(), draws.end());
  return {estimate, quantile(draws, tail), quantile(draws, 1.0 - tail)};
}

Effect effect_of(const Contrast& contrast, std::span<const size_t> benchmarks, Draws& draws,
                 const BootstrapConfig& config) {
  double estimate = 0;
  for (const size_t b : benchmarks)
    estimate += mean_of(question_values(contrast, b)) / double(benchmarks.size());
  const double tail = (1.0 - config.coverage) / 2;
  const Uncertainty uncertainty = uncertainty_of(contrast, benchmarks);
  Effect effect{.questions = percentiles(draws.questions, estimate, tail),
                .standard_error = std::sqrt(uncertainty.variance),
                .degrees_of_freedom = uncertainty.degrees()};
  effect.includes_runs = std::all_of(contrast.begin(), contrast.end(),
                                     [](const RunGroup& group) { return group.runs.size() > 1; });
  const double drawn = std::sqrt(sum_of_squares(draws.both) / double(config.draws - 1));
  effect.interval = percentiles(draws.both, estimate, tail);
  if (drawn > 0) {
    const double stretch = t_quantile(1.0 - tail, std::max(1.0, effect.degrees_of_freedom)) /
                           normal_quantile(1.0 - tail) * effect.standard_error / drawn;
    effect.interval.low = estimate + stretch * (effect.interval.low - estimate);
    effect.interval.high = estimate + stretch * (effect.interval.high - estimate);
  }
  effect.p = effect.standard_error > 0
                 ? two_sided_p(estimate / effect.standard_error, std::max(1.0, effect.degrees_of_freedom))
                 : (estimate == 0 ? 1.0 : 0.0);
  return effect;
}

[[maybe_unused]] bool have_one_shape(std::span<const Contrast> contrasts) {
  const RunValues& shape = contrasts[0][0].runs[0];
  for (const Contrast& contrast : contrasts)
    for (const RunGroup& group : contrast)
      for (const RunValues& run : group.runs) {
        if (run.size() != shape.size()) return false;
        for (size_t b = 0; b < run.size(); ++b)
          if (run[b].name != shape[b].name || run[b].values.size() != shape[b].values.size()) return false;
      }
  return true;
}

}  // namespace

double quantile(std::span<const double> sorted, double share) {
  assert(!sorted.empty() && share >= 0 && share <= 1);
  const double position = share * double(sorted.size() - 1);
  const auto below = std::min(size_t(position), sorted.size() - 1);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - double(below));
}

std::vector<SuiteEffect> bootstrap(std::span<const Contrast> contrasts, const BootstrapConfig& config) {
  if (config.draws < 100) fail("bootstrap: ", config.draws, " draws, expected at least 100");
  if (!(config.coverage > 0 && config.coverage < 1))
    fail("bootstrap: coverage ", config.coverage, ", expected between 0 and 1");
  if (contrasts.empty()) return {};
  assert(have_one_shape(contrasts));
  const size_t num_benchmarks = contrasts[0][0].runs[0].size();
  const std::vector<double> zeros(config.draws, 0.0);
  std::vector<Draws> means(contrasts.size(), {zeros, zeros}), draws = means;
  std::vector<SuiteEffect> effects(contrasts.size());
  std::vector<size_t> all(num_benchmarks);
  std::iota(all.begin(), all.end(), size_t{0});
  for (size_t b = 0; b < num_benchmarks; ++b) {
    draw_benchmark(draws, contrasts, b, config);
    for (size_t c = 0; c < contrasts.size(); ++c) {
      for (uint32_t draw = 0; draw < config.draws; ++draw) {
        means[c].questions[draw] += draws[c].questions[draw] / double(num_benchmarks);
        means[c].both[draw] += draws[c].both[draw] / double(num_benchmarks);
      }
      effects[c].benchmarks.push_back(
          effect_of(contrasts[c], std::span(all).subspan(b, 1), draws[c], config));
    }
  }
  for (size_t c = 0; c < contrasts.size(); ++c)
    effects[c].mean = effect_of(contrasts[c], all, means[c], config);
  return effects;
}

Contrast weighted_sum(std::span<const std::vector<RunValues>> groups, std::span<const double> weights,
                      bool is_paired) {
  assert(!groups.empty() && groups.size() == weights.size());
  Contrast contrast;
  for (size_t g = 0; g < groups.size(); ++g) contrast.push_back({weights[g], groups[g]});
  if (!is_paired) return contrast;
  RunGroup pairs{.weight = 1, .runs = groups[0]};
  for (size_t r = 0; r < pairs.runs.size(); ++r)
    for (size_t b = 0; b < pairs.runs[r].size(); ++b)
      for (size_t q = 0; q < pairs.runs[r][b].values.size(); ++q) {
        double sum = 0;
        for (size_t g = 0; g < groups.size(); ++g) {
          assert(groups[g].size() == groups[0].size());
          sum += weights[g] * groups[g][r][b].values[q];
        }
        pairs.runs[r][b].values[q] = sum;
      }
  return {pairs};
}

Contrast difference(const std::vector<RunValues>& left, const std::vector<RunValues>& right, bool is_paired) {
  const std::vector<RunValues> groups[] = {left, right};
  const double weights[] = {1, -1};
  return weighted_sum(groups, weights, is_paired);
}

Contrast interaction(const std::vector<RunValues>& a, const std::vector<RunValues>& b,
                     const std::vector<RunValues>& c, const std::vector<RunValues>& d, bool is_paired) {
  const std::vector<RunValues> groups[] = {a, b, c, d};
  const double weights[] = {1, -1, -1, 1};
  return weighted_sum(groups, weights, is_paired);
}

double suite_mean(const RunValues& run) {
  double sum = 0;
  for (const BenchmarkValues& benchmark : run) sum += mean_of(benchmark.values);
  return sum / double(run.size());
}

std::vector<double> run_effects(const Contrast& contrast) {
  std::vector<double> effects;
  if (contrast.size() != 1) return effects;
  for (const RunValues& run : contrast[0].runs) effects.push_back(contrast[0].weight * suite_mean(run));
  return effects;
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, double(order.size() - i) * p[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace ropd::stats
