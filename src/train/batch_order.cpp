#include "train/batch_order.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <set>
#include <utility>

namespace ropd::train {
namespace {

// Indices with their work, in the order in which they came together.
struct Group {
  int64_t sum = 0;
  std::vector<std::pair<size_t, int64_t>> items;
};

// A total order: no index is in two groups.
bool is_heavier(const Group& a, const Group& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  if (a.items.size() != b.items.size()) return a.items.size() > b.items.size();
  return a.items > b.items;
}

// As many groups as there are parts, heaviest first.
struct Arrangement {
  std::vector<Group> groups;
  int64_t spread() const { return groups.front().sum - groups.back().sum; }
};

struct WidestFirst {
  bool operator()(const Arrangement& a, const Arrangement& b) const {
    if (a.spread() != b.spread()) return a.spread() > b.spread();
    return is_heavier(a.groups.front(), b.groups.front());
  }
};

Arrangement joined(Arrangement one, const Arrangement& other) {
  const size_t parts = one.groups.size();
  for (size_t i = 0; i < parts; ++i) {
    const Group& light = other.groups[parts - 1 - i];
    Group& heavy = one.groups[i];
    heavy.sum += light.sum;
    heavy.items.insert(heavy.items.end(), light.items.begin(), light.items.end());
  }
  std::sort(one.groups.begin(), one.groups.end(), is_heavier);
  return one;
}

// The responses of every rank, in the order in which it takes them.
std::vector<std::vector<size_t>> shares_of_ranks(std::span<const Rollout> rollouts, size_t ranks,
                                                 bool balanced) {
  std::vector<std::vector<size_t>> shares(ranks);
  if (!balanced) {
    for (size_t i = 0; i < rollouts.size(); ++i) shares[i / (rollouts.size() / ranks)].push_back(i);
    return shares;
  }
  std::vector<int64_t> work;
  for (const Rollout& rollout : rollouts) work.push_back(workload(length_of(rollout)));
  const auto groups = equal_size_partition(work, ranks);
  for (size_t r = 0; r < ranks; ++r) {
    auto ascending = groups[r];
    std::stable_sort(ascending.begin(), ascending.end(),
                     [&](size_t a, size_t b) { return work[a] < work[b]; });
    for (size_t i = 0; i < ascending.size(); i += 2) shares[r].push_back(ascending[i]);
    for (size_t i = ascending.size() / 2; i-- > 0;) shares[r].push_back(ascending[2 * i + 1]);
  }
  return shares;
}

}  // namespace

int64_t length_of(const Rollout& rollout) {
  return static_cast<int64_t>(rollout.prompt_ids.size() + rollout.response_ids.size());
}

int64_t workload(int64_t length) { return 24576 * length + length * length; }

std::vector<std::vector<size_t>> equal_size_partition(std::span<const int64_t> work, size_t parts) {
  assert(parts > 0 && !work.empty() && work.size() % parts == 0);
  std::vector<size_t> ascending(work.size());
  std::iota(ascending.begin(), ascending.end(), 0);
  std::stable_sort(ascending.begin(), ascending.end(), [&](size_t a, size_t b) { return work[a] < work[b]; });
  std::set<Arrangement, WidestFirst> arrangements;
  for (size_t first = 0; first < ascending.size(); first += parts) {
    Arrangement arrangement;
    for (size_t i = parts; i-- > 0;) {
      const size_t index = ascending[first + i];
      arrangement.groups.push_back({work[index], {{index, work[index]}}});
    }
    arrangements.insert(std::move(arrangement));
  }
  while (arrangements.size() > 1) {
    auto one = arrangements.extract(arrangements.begin());
    const auto other = arrangements.extract(arrangements.begin());
    arrangements.insert(joined(std::move(one.value()), other.value()));
  }
  std::vector<std::vector<size_t>> result;
  for (const Group& group : arrangements.begin()->groups) {
    auto& indices = result.emplace_back();
    for (const auto& [index, value] : group.items) indices.push_back(index);
    std::sort(indices.begin(), indices.end());
  }
  return result;
}

std::vector<size_t> batch_order(std::span<const Rollout> rollouts, const OptimizationConfig& config) {
  std::vector<size_t> order(rollouts.size());
  std::iota(order.begin(), order.end(), 0);
  if (config.order == Order::recorded) return order;
  assert(rollouts.size() % config.shards == 0 && config.minibatch % config.shards == 0);
  const auto shares = shares_of_ranks(rollouts, config.shards, config.order == Order::ranks_balanced);
  const size_t piece = config.minibatch / config.shards, share = rollouts.size() / config.shards;
  order.clear();
  for (size_t begin = 0; begin < share; begin += piece)
    for (const auto& of_rank : shares)
      for (size_t i = begin; i < std::min(begin + piece, share); ++i) order.push_back(of_rank[i]);
  return order;
}

}  // namespace ropd::train
