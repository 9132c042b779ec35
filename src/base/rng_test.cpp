#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ropd {
namespace {

using Four = std::array<uint32_t, 4>;

// The vectors of Random123's kat_vectors file.
TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomBits, CountsByKeyRowColumnAndKeysBySeedAndPurpose) {
  const uint32_t purpose = static_cast<uint32_t>(Purpose::test) * 0x9E3779B9u;
  EXPECT_EQ(
      random_bits(0x1111222233334444, Purpose::test, {.key = 0x5555666677778888, .row = 9, .column = 10}),
      philox({0x77778888, 0x55556666, 9, 10}, {0x33334444, 0x11112222u ^ purpose}));
}

TEST(RandomBits, DifferBetweenPurposesAndIndices) {
  std::set<Four> seen;
  for (const auto purpose : {Purpose::sampling, Purpose::bootstrap, Purpose::test}) {
    for (uint64_t key = 0; key < 4; ++key) {
      for (uint32_t row = 0; row < 4; ++row) {
        for (uint32_t column = 0; column < 4; ++column)
          seen.insert(random_bits(1, purpose, {key, row, column}));
      }
    }
  }
  EXPECT_EQ(seen.size(), 3u * 64u);
}

TEST(RandomUniform, FillsTheUnitIntervalEvenly) {
  double sum = 0.0, lowest = 1.0, highest = 0.0;
  constexpr uint32_t kDraws = 100000;
  for (uint32_t row = 0; row < kDraws; ++row) {
    const double value = random_uniform(7, Purpose::test, {.row = row});
    sum += value;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  EXPECT_GE(lowest, 0.0);
  EXPECT_LT(lowest, 1e-3);
  EXPECT_LT(highest, 1.0);
  EXPECT_GT(highest, 0.999);
  EXPECT_NEAR(sum / kDraws, 0.5, 5 * 0.2887 / 316.2);  // five standard errors
}

TEST(DeriveSeed, IsExactInAJsonNumberAndDependsOnBothArguments) {
  EXPECT_LT(derive_seed(1, "bank"), uint64_t{1} << 53);
  EXPECT_EQ(derive_seed(1, "bank"), derive_seed(1, "bank"));
  EXPECT_NE(derive_seed(1, "bank"), derive_seed(2, "bank"));
  EXPECT_NE(derive_seed(1, "bank"), derive_seed(1, "eval"));
}

TEST(RandomStream, HasASeedOfItsOwn) {
  EXPECT_EQ(RandomStream(1, "bank").derived_seed(), derive_seed(1, "bank"));
  EXPECT_NE(RandomStream(1, "bank").derived_seed(), RandomStream(2, "bank").derived_seed());
  EXPECT_NE(RandomStream(1, "bank").derived_seed(), RandomStream(1, "eval").derived_seed());
}

TEST(TextKey, IsFnv1a) {
  EXPECT_EQ(text_key(""), 0xcbf29ce484222325u);
  EXPECT_EQ(text_key("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(text_key("foobar"), 0x85944171f73967e8u);
}

TEST(RandomPermutation, HoldsEveryNumberOnce) {
  auto order = random_permutation(1000, 3, Purpose::query_order);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(order[i], i);
  EXPECT_TRUE(random_permutation(0, 3, Purpose::query_order).empty());
}

TEST(RandomPermutation, GivesAllOrdersOfThreeEquallyOften) {
  std::array<int, 27> counts{};
  for (uint64_t key = 0; key < 6000; ++key) {
    const auto order = random_permutation(3, 1, Purpose::test, key);
    ++counts[order[0] * 9 + order[1] * 3 + order[2]];
  }
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 0), 21);
  for (const int count : counts) {
    if (count > 0) {
      EXPECT_NEAR(count, 1000, 150);  // five standard deviations
    }
  }
}

}  // namespace
}  // namespace ropd
