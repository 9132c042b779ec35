#include "train/rank_slices.h"

#include <gtest/gtest.h>

#include "base/block_sum.h"
#include "base/error.h"
#include "comm/thread_world.h"
#include "support/test_data.h"

namespace ropd::train {
namespace {

// Ten blocks, the last one short.
constexpr size_t kSize = 9 * kSumBlock + 1234;

float value_of(size_t vector, size_t i) {
  return static_cast<float>((i * 2654435761u + vector * 40503u) % 10007) / 997.0f - 4;
}

std::vector<float> vector_of(size_t vector) {
  std::vector<float> values(kSize);
  for (size_t i = 0; i < kSize; ++i) values[i] = value_of(vector, i);
  return values;
}

class RankSlicesTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RankSlicesTest, testing::Values(1, 2, 3, 4, 12));

TEST_P(RankSlicesTest, TotalOverBlocksHasTheBitsOfOneRank) {
  const auto values = vector_of(0);
  const auto term = [&](size_t i) { return static_cast<double>(values[i]) * values[i]; };
  const double expected = block_sum(kSize, term);
  comm::run_thread_world(GetParam(), [&](comm::World& world) {
    const RankSlices slices(world, kSize);
    const comm::Slice own = slices.own();
    const double found = slices.total(block_sums(own.size(), [&](size_t i) { return term(own.begin + i); }));
    EXPECT_EQ(found, expected);
    EXPECT_EQ(slices.leaders(world.rank() + 5), 5);
  });
}

// Shards 0 .. 6, shard s on rank s mod ranks: ((g0 + g1) + g2) + ...
TEST_P(RankSlicesTest, FoldAddsInTheOrderOfShards) {
  constexpr size_t kShards = 7;
  auto expected = vector_of(0);
  for (size_t s = 1; s < kShards; ++s)
    for (size_t i = 0; i < kSize; ++i) expected[i] += value_of(s, i);
  comm::run_thread_world(GetParam(), [&](comm::World& world) {
    const RankSlices slices(world, kSize);
    const size_t ranks = static_cast<size_t>(world.size()), rank = static_cast<size_t>(world.rank());
    std::vector<float> sum(slices.own().size(), 99);
    for (size_t first = 0; first < kShards; first += ranks) {
      const size_t active = std::min(ranks, kShards - first);
      const auto gradient = rank < active ? vector_of(first + rank) : std::vector<float>();
      slices.fold(sum, gradient, static_cast<int>(active), first == 0);
    }
    for (size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], expected[slices.own().begin + i]) << i;
  });
}

TEST_P(RankSlicesTest, SharedSlicesAreEverywhere) {
  comm::run_thread_world(GetParam(), [&](comm::World& world) {
    const RankSlices slices(world, kSize);
    std::vector<float> values(kSize, -1);
    for (size_t i = slices.own().begin; i < slices.own().end; ++i) values[i] = value_of(3, i);
    slices.share(values);
    EXPECT_EQ(values, vector_of(3));
    if (!slices.leads()) values.assign(kSize, 0);
    slices.copy_from_leader(values);
    EXPECT_EQ(values, vector_of(3));
  });
}

TEST_P(RankSlicesTest, VectorsGoThroughFilesOfTheLeader) {
  const test::TemporaryDirectory directory;
  const Path file = directory / "state.safetensors";
  const std::vector<optim::TensorRange> tensors = {
      {"a", 0, 100'000}, {"b", 100'000, 400'001}, {"c", 500'001, kSize - 500'001}};
  comm::run_thread_world(GetParam(), [&](comm::World& world) {
    const RankSlices slices(world, kSize);
    const comm::Slice own = slices.own();
    const auto m = vector_of(1), v = vector_of(2);
    slices.save(std::vector<std::span<const float>>{std::span(m).subspan(own.begin, own.size()),
                                                    std::span(v).subspan(own.begin, own.size())},
                [&](std::span<const SavedVector::Read> reads) {
                  EXPECT_TRUE(slices.leads());
                  save_vectors(file, std::vector<SavedVector>{{"m", reads[0]}, {"v", reads[1]}}, tensors);
                });
  });
  // The same file as of one rank, read by another number of ranks.
  const auto m = vector_of(1), v = vector_of(2);
  save_vectors(directory / "alone.safetensors", std::vector<SavedVector>{{"m", m}, {"v", v}}, tensors);
  EXPECT_EQ(sha256_file(file), sha256_file(directory / "alone.safetensors"));
  comm::run_thread_world(GetParam() % 4 + 1, [&](comm::World& world) {
    const RankSlices slices(world, kSize);
    std::vector<float> first(slices.own().size()), second(slices.own().size());
    slices.load(
        std::vector<std::span<float>>{first, second}, [&](std::span<const RestoredVector::Write> writes) {
          load_vectors(file, std::vector<RestoredVector>{{"m", writes[0]}, {"v", writes[1]}}, tensors);
        });
    for (size_t i = 0; i < first.size(); ++i) ASSERT_EQ(first[i], value_of(1, slices.own().begin + i));
    for (size_t i = 0; i < second.size(); ++i) ASSERT_EQ(second[i], value_of(2, slices.own().begin + i));
  });
}

TEST(StepBytes, AreGradientsToOwnersAndParametersToAll) {
  EXPECT_EQ(step_bytes(1000, 8, 1), 0u);
  EXPECT_EQ(step_bytes(1000, 8, 2), 4u * (4 * 500 + 500));
  EXPECT_EQ(step_bytes(1000, 8, 8), 4u * (875 + 875));
  EXPECT_EQ(step_bytes(1000, 1, 4), 4u * (750 + 750));
}

// Another world, and what was sent through it.
class CountingWorld final : public comm::World {
 public:
  explicit CountingWorld(comm::World& world) : world_(world) {}
  uint64_t sent() const { return sent_; }
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  std::string host() const override { return world_.host(); }
  void exchange(std::span<const comm::Outgoing> outgoing, std::span<const comm::Incoming> incoming) override {
    for (const comm::Outgoing& out : outgoing) sent_ += out.bytes.size();
    world_.exchange(outgoing, incoming);
  }
  void send(std::span<const std::byte> bytes, int to, comm::Tag tag) override {
    sent_ += bytes.size();
    world_.send(bytes, to, tag);
  }
  comm::Message receive(std::optional<int> from, comm::Tag tag, comm::Waiting waiting) override {
    return world_.receive(from, tag, waiting);
  }
  std::optional<comm::Message> try_receive(std::optional<int> from, comm::Tag tag) override {
    return world_.try_receive(from, tag);
  }
  [[noreturn]] void abort(int exit_code) override { fail("not asked for: exit code ", exit_code); }

 private:
  comm::World& world_;
  uint64_t sent_ = 0;
};

TEST(StepBytes, AreWhatRankZeroSendsForAStep) {
  constexpr size_t kShards = 8, kParameters = 24 * kSumBlock;  // so that slices are equal
  for (const int ranks : {1, 2, 3, 4, 8, 12})
    comm::run_thread_world(ranks, [&](comm::World& world) {
      CountingWorld counting(world);
      const RankSlices slices(counting, kParameters);
      std::vector<float> values(kParameters), sum(slices.own().size());
      const auto size = static_cast<size_t>(ranks);
      for (size_t first = 0; first < kShards; first += size) {
        const size_t active = std::min(size, kShards - first);
        const bool has_shard = static_cast<size_t>(world.rank()) < active;
        slices.fold(sum, has_shard ? std::span<const float>(values) : std::span<const float>(),
                    static_cast<int>(active), first == 0);
      }
      slices.share(values);
      if (world.rank() > 0) return;
      EXPECT_EQ(counting.sent(), step_bytes(kParameters, kShards, ranks)) << ranks;
    });
}

}  // namespace
}  // namespace ropd::train
