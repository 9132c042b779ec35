#include "train/batch_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "train/minibatch.h"

namespace ropd::train {
namespace {

using testing::ElementsAre;

// Responses of given lengths, prompts included.
std::vector<Rollout> rollouts_of(const std::vector<size_t>& lengths) {
  std::vector<Rollout> rollouts;
  for (const size_t length : lengths) {
    Rollout& rollout = rollouts.emplace_back();
    rollout.prompt_ids = {1};
    rollout.response_ids.assign(length - 1, 2);
  }
  return rollouts;
}

OptimizationConfig config_of(Order order, uint64_t responses, uint64_t minibatch, uint64_t shards) {
  OptimizationConfig config;
  config.order = order;
  config.responses_per_iteration = responses;
  config.minibatch = minibatch;
  config.shards = shards;
  return config;
}

std::vector<size_t> order_of(Order order, const std::vector<size_t>& lengths, uint64_t minibatch,
                             uint64_t shards) {
  return batch_order(rollouts_of(lengths), config_of(order, lengths.size(), minibatch, shards));
}

// What shard s of minibatch m holds when the order is cut as the trainer cuts it.
std::vector<size_t> shard_of(const std::vector<size_t>& order, uint64_t minibatch, uint64_t shards, size_t m,
                             size_t s) {
  const MinibatchRange range = split(order.size(), minibatch)[m];
  const auto [begin, end] = shard_ranges(range.size(), shards)[s];
  return {order.begin() + static_cast<ptrdiff_t>(range.begin + begin),
          order.begin() + static_cast<ptrdiff_t>(range.begin + end)};
}

std::vector<size_t> counted(size_t first, size_t count) {
  std::vector<size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

TEST(BatchOrder, RecordedIsConsecutive) {
  EXPECT_THAT(order_of(Order::recorded, {9, 1, 8, 2, 7}, 2, 3), ElementsAre(0, 1, 2, 3, 4));
}

TEST(BatchOrder, ARanksMinibatchIsTheUnionOfEveryRanksNextPiece) {
  // Ranks own 0-4 and 5-9; pieces of 2, the last of 1.
  EXPECT_THAT(order_of(Order::ranks, std::vector<size_t>(10, 3), 4, 2),
              ElementsAre(0, 1, 5, 6, 2, 3, 7, 8, 4, 9));
}

TEST(BatchOrder, EightRanksOf480TakeSixteenAndAtLastTwelveEach) {
  const auto order = order_of(Order::ranks, std::vector<size_t>(480, 2), 128, 8);
  for (size_t rank = 0; rank < 8; ++rank) {
    for (size_t m = 0; m < 3; ++m)
      EXPECT_EQ(shard_of(order, 128, 8, m, rank), counted(60 * rank + 16 * m, 16)) << rank << " " << m;
    EXPECT_EQ(shard_of(order, 128, 8, 3, rank), counted(60 * rank + 48, 12));
  }
}

TEST(BatchOrder, WorkloadIsThatOfThePublicTrainer) {
  EXPECT_EQ(workload(1), 24577);
  EXPECT_EQ(workload(100), 2457600 + 10000);
  EXPECT_EQ(workload(int64_t{1} << 24), (int64_t{24576} << 24) + (int64_t{1} << 48));
}

// Ascending 1 2 | 4 7 | 8 9 in two parts: arrangements {2}{1}, {7}{4}, {9}{8}, spread 1, 3, 1. Widest {7}{4};
// of the two others {9}{8} has the heavier first group: {7, 8}{4, 9}, sums 15, 13. Then {2}{1} joins it
// crosswise: {7, 8, 1}{4, 9, 2}, sums 16, 15.
TEST(EqualSizePartition, JoinsTheWidestArrangementsCrosswise) {
  const std::vector<int64_t> work = {4, 9, 1, 7, 2, 8};
  EXPECT_THAT(equal_size_partition(work, 2), ElementsAre(ElementsAre(2, 3, 5), ElementsAre(0, 1, 4)));
}

// 5 5 5 | 5 5 5: nothing but ties. Of equal groups the one with the higher index counts as heavier, so the
// arrangements are {2}{1}{0} and {5}{4}{3}; the second is taken first: {5, 0}{4, 1}{3, 2}, and again the
// higher index first.
TEST(EqualSizePartition, TiesGoToTheHigherIndex) {
  const std::vector<int64_t> work(6, 5);
  EXPECT_THAT(equal_size_partition(work, 3),
              ElementsAre(ElementsAre(0, 5), ElementsAre(1, 4), ElementsAre(2, 3)));
}

TEST(EqualSizePartition, GroupsAreOfEqualSizeWhateverTheSums) {
  std::vector<int64_t> work(24, 1);
  work[5] = 1000000;
  for (const auto& group : equal_size_partition(work, 8)) EXPECT_EQ(group.size(), 3u);
  EXPECT_THAT(equal_size_partition(work, 24), testing::SizeIs(24));
  EXPECT_THAT(equal_size_partition(work, 1), ElementsAre(testing::ElementsAreArray(counted(0, 24))));
}

// Lengths 1..8 in two ranks: {8}{7}, {6}{5}, {4}{3}, {2}{1} by length; workloads 24576 L + L^2 spread by
// 24576 + 2 L + 1, so the longest pair is the widest, then the next: {8, 5}{7, 6}, spread |64 + 25 - 49 - 36|
// = 4, back in line behind {4}{3} and {2}{1}: {4, 1}{3, 2}, spread 16 + 1 - 9 - 4 = 4. Of equal spreads the
// heavier first: {8, 5} joins {3, 2}: {8, 5, 3, 2}{7, 6, 4, 1}, squares 102 = 102, sums equal. Ties again to
// the items: index 7 (length 8) against 6, so rank 0 has lengths 2 3 5 8 and rank 1 has 1 4 6 7.
// Even positions in order, odd ones in reverse: 2 5 8 3 and 1 6 7 4. Minibatches of four, two a rank.
TEST(BatchOrder, BalancedRanksRiseOverEvenPositionsAndFallOverOddOnes) {
  const std::vector<size_t> lengths = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto order = order_of(Order::ranks_balanced, lengths, 4, 2);
  std::vector<size_t> ordered;
  for (const size_t i : order) ordered.push_back(lengths[i]);
  EXPECT_THAT(ordered, ElementsAre(2, 5, 1, 6, 8, 3, 7, 4));
}

// method.md section 4: minibatch 1 has the short half, 2 the longest, 4 (12 a rank) the shortest.
TEST(BatchOrder, BalancedMinibatchesDifferInLength) {
  std::vector<size_t> lengths;
  for (size_t i = 0; i < 480; ++i) lengths.push_back(100 + (i * 7919) % 480);
  const auto order = order_of(Order::ranks_balanced, lengths, 128, 8);
  std::vector<double> means;
  for (const MinibatchRange& range : split(480, 128)) {
    double sum = 0;
    for (size_t i = range.begin; i < range.end; ++i) sum += static_cast<double>(lengths[order[i]]);
    means.push_back(sum / static_cast<double>(range.size()));
  }
  EXPECT_LT(means[3], means[0]);
  EXPECT_LT(means[0], means[2]);
  EXPECT_LT(means[2], means[1]);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, counted(0, 480)) << "every response once";
}

}  // namespace
}  // namespace ropd::train
