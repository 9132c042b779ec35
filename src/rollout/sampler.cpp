#include "rollout/sampler.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "kernels/elementary.h"
#include "kernels/vocab_rows.h"

namespace ropd::rollout {
namespace {

using kernels::kVocabBlock;

constexpr int64_t kStreamedTopK = 256;  // up to here the k largest are kept sorted while the row streams by

// One pass over the row: its log-sum-exp, and for the end of every block the largest logit so far and the
// sum of exp(logit - that).
struct RowSums {
  struct Block {
    float own_max, max_so_far, sum_so_far;
  };
  std::vector<Block> blocks;
  float log_sum_exp = 0;
  float max() const { return blocks.back().max_so_far; }
  double sum() const { return blocks.back().sum_so_far; }
};

struct Entry {
  float logit;
  Token id;
};

bool comes_before(const Entry& a, const Entry& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

std::span<const float> block_of(std::span<const float> logits, size_t index) {
  const size_t begin = index * kVocabBlock;
  return logits.subspan(begin, std::min<size_t>(kVocabBlock, logits.size() - begin));
}

RowSums sum_row(std::span<const float> logits) {
  RowSums row;
  const size_t num_blocks = (logits.size() + kVocabBlock - 1) / kVocabBlock;
  row.blocks.reserve(num_blocks);
  kernels::RowAccumulator accumulator;
  for (size_t i = 0; i < num_blocks; ++i) {
    const float own_max = accumulator.add(block_of(logits, i), /*with_entropy=*/false);
    row.blocks.push_back({own_max, accumulator.max(), accumulator.sum()});
  }
  row.log_sum_exp = accumulator.result().log_sum_exp;
  return row;
}

double weight_of(float logit, float max) { return kernels::exp(logit - max); }

Token likeliest(std::span<const float> logits, const RowSums& row) {
  size_t block = 0;
  while (row.blocks[block].own_max != row.max()) ++block;
  const auto values = block_of(logits, block);
  const auto found = std::find(values.begin(), values.end(), row.max());
  return static_cast<Token>(static_cast<int64_t>(block) * kVocabBlock + (found - values.begin()));
}

// Inverts the distribution function over the whole row; only the block it falls into is summed entry by
// entry.
Token invert_row(std::span<const float> logits, const RowSums& row, double uniform) {
  const double target = uniform * row.sum();
  double before = 0;
  size_t chosen = 0;
  for (size_t i = 0; i < row.blocks.size(); ++i) {
    const auto& block = row.blocks[i];
    const double until = block.sum_so_far == 0
                             ? 0.0
                             : block.sum_so_far * std::exp(static_cast<double>(block.max_so_far) - row.max());
    if (until <= before) continue;  // no weight of its own, up to rounding
    chosen = i;
    if (until > target || i + 1 == row.blocks.size()) break;
    before = until;
  }
  const auto values = block_of(logits, chosen);
  float weights[kVocabBlock];
  for (size_t i = 0; i < values.size(); ++i) weights[i] = values[i] - row.max();
  kernels::exp({weights, values.size()}, {weights, values.size()});
  // Rounding may leave the target just behind the block's end: then it is the last entry with any weight.
  size_t last = 0;
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (weights[i] == 0) continue;
    last = i;
    sum += weights[i];
    if (before + sum > target) break;
  }
  return static_cast<Token>(chosen * kVocabBlock + last);
}

std::vector<Entry> entries_from(std::span<const float> logits, float lowest) {
  std::vector<Entry> entries;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] >= lowest && logits[i] != -std::numeric_limits<float>::infinity())
      entries.push_back({logits[i], static_cast<Token>(i)});
  return entries;
}

std::vector<Entry> top_entries(std::span<const float> logits, const RowSums& row, int64_t k) {
  if (k > kStreamedTopK) {
    auto entries = entries_from(logits, -std::numeric_limits<float>::infinity());
    if (static_cast<int64_t>(entries.size()) > k) {
      std::nth_element(entries.begin(), entries.begin() + k, entries.end(), comes_before);
      entries.resize(static_cast<size_t>(k));
    }
    return entries;
  }
  float values[kStreamedTopK];
  int32_t ids[kStreamedTopK];
  const size_t count = static_cast<size_t>(std::min(k, static_cast<int64_t>(logits.size())));
  kernels::TopEntries top({values, count}, {ids, count});
  for (size_t i = 0; i < row.blocks.size(); ++i)
    top.add(block_of(logits, i), static_cast<int32_t>(i * kVocabBlock), row.blocks[i].own_max);
  std::vector<Entry> entries;
  for (int64_t i = 0; i < top.count(); ++i)
    if (values[i] != -std::numeric_limits<float>::infinity()) entries.push_back({values[i], ids[i]});
  return entries;
}

// Leaves the first entries, in the order of comes_before, that together have at least `target` weight.
// Selection by halves: linear in the number of entries.
void keep_nucleus(std::vector<Entry>& entries, double target, float max) {
  size_t too_few = 0, enough = entries.size();
  double weight_before = 0;
  while (enough - too_few > 1) {
    const size_t middle = too_few + (enough - too_few) / 2;
    const auto begin = entries.begin();
    std::nth_element(begin + static_cast<std::ptrdiff_t>(too_few),
                     begin + static_cast<std::ptrdiff_t>(middle), begin + static_cast<std::ptrdiff_t>(enough),
                     comes_before);
    double weight = weight_before;
    for (size_t i = too_few; i < middle; ++i) weight += weight_of(entries[i].logit, max);
    if (weight >= target) {
      enough = middle;
    } else {
      too_few = middle;
      weight_before = weight;
    }
  }
  entries.resize(enough);
}

Token invert_entries(std::vector<Entry>& entries, float max, double uniform) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });
  double total = 0;
  for (const Entry& entry : entries) total += weight_of(entry.logit, max);
  Token last = entries.front().id;
  double sum = 0;
  for (const Entry& entry : entries) {
    const double weight = weight_of(entry.logit, max);
    if (weight == 0) continue;
    last = entry.id;
    sum += weight;
    if (sum > uniform * total) break;
  }
  return last;
}

Token draw_truncated(std::span<const float> logits, const RowSums& row, const SamplingConfig& config,
                     double uniform) {
  std::vector<Entry> entries;
  double total = row.sum();
  if (config.top_k > 0) {
    entries = top_entries(logits, row, config.top_k);
    total = 0;
    for (const Entry& entry : entries) total += weight_of(entry.logit, row.max());
  } else {
    // All entries below (1 - p) / V together weigh less than 1 - p, so none of them is needed; half of that
    // leaves room for rounding.
    const double share = 0.5 * (1.0 - config.top_p) / static_cast<double>(logits.size());
    entries = entries_from(logits, static_cast<float>(row.log_sum_exp + std::log(share)));
  }
  if (config.top_p < 1) keep_nucleus(entries, config.top_p * total, row.max());
  return invert_entries(entries, row.max(), uniform);
}

}  // namespace

void SamplingConfig::validate() const {
  if (!(temperature > 0) || !std::isfinite(temperature) || static_cast<float>(temperature) == 0)
    fail("temperature must be > 0 and finite, got ", temperature, " (for the likeliest token use greedy)");
  if (!(top_p > 0 && top_p <= 1)) fail("top_p must be in (0, 1], got ", top_p);
  if (top_k < 0) fail("top_k must be >= 0 (0 = all tokens), got ", top_k);
}

Draw draw(std::span<float> logits, const SamplingConfig& config, const DrawKey& key) {
  assert(!logits.empty());
  kernels::divide_by_temperature(logits, static_cast<float>(config.temperature));
  const RowSums row = sum_row(logits);
  if (!std::isfinite(row.log_sum_exp)) return {.is_valid = false};
  Draw result;
  if (config.greedy || config.top_k == 1) {
    result.token = likeliest(logits, row);
  } else {
    const double uniform = random_uniform(key.seed, Purpose::sampling, {key.query, key.sample, key.position});
    const bool is_whole =
        config.top_p == 1 && (config.top_k == 0 || config.top_k >= static_cast<int64_t>(logits.size()));
    result.token = is_whole ? invert_row(logits, row, uniform) : draw_truncated(logits, row, config, uniform);
  }
  result.logprob = logits[static_cast<size_t>(result.token)] - row.log_sum_exp;
  return result;
}

}  // namespace ropd::rollout
