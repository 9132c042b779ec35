#include "curriculum/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace ropd::curriculum {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Mixture, EqualPartsTakeTurns) {
  EXPECT_THAT(interleave({}, 2, 6), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(interleave({}, 3, 7), ElementsAre(0, 1, 2, 0, 1, 2, 0));
  EXPECT_EQ(interleave({5, 5}, 2, 6), interleave({}, 2, 6));
}

// Shares 3/4 and 1/4. How far behind before each place: .75 .25 -> 0; .5 .5 -> 0 (tie); .25 .75 -> 1;
// 1 0 -> 0; and from there again.
TEST(Mixture, APlaceGoesToThePartThatIsFarthestBehind) {
  EXPECT_THAT(interleave({3, 1}, 2, 8), ElementsAre(0, 0, 1, 0, 0, 0, 1, 0));
}

TEST(Mixture, APartWithoutAShareGetsNoPlace) {
  EXPECT_THAT(interleave({0, 2}, 2, 3), ElementsAre(1, 1, 1));
  EXPECT_THAT(places_of_parts({0, 1, 1}, 3, 4), ElementsAre(0, 2, 2));
}

TEST(Mixture, EveryBeginningOfABatchOfTwoKeepsTheRatioToAResponse) {
  for (const uint64_t first : {0, 1, 7, 13, 50, 99}) {
    const auto places = interleave({first, 100 - first}, 2, 480);
    uint64_t taken = 0;
    for (uint64_t i = 0; i < places.size(); ++i) {
      taken += places[i] == 0;
      const double share = static_cast<double>(first * (i + 1)) / 100;
      EXPECT_LT(std::abs(static_cast<double>(taken) - share), 1.0) << first << " at " << i;
    }
  }
}

TEST(Mixture, APatternRepeatsAfterTheSumOfItsRatio) {
  const auto places = interleave({5, 2, 3}, 3, 40);
  for (size_t i = 0; i + 10 < places.size(); ++i) EXPECT_EQ(places[i], places[i + 10]) << i;
}

TEST(Mixture, CountsThePlacesOfEveryPart) {
  EXPECT_THAT(places_of_parts({}, 2, 480), ElementsAre(240, 240));
  EXPECT_THAT(places_of_parts({3, 1}, 2, 480), ElementsAre(360, 120));
  EXPECT_THAT(places_of_parts({1, 2}, 2, 10), ElementsAre(3, 7));  // 3.33 and 6.67
}

TEST(Mixture, RatiosAreKnownInLowestTerms) {
  EXPECT_THAT(reduced({6, 4}), ElementsAre(3, 2));
  EXPECT_THAT(reduced({0, 9}), ElementsAre(0, 1));
  EXPECT_THAT(reduced({7, 7, 7}), IsEmpty());
}

// From all of the first to all of the second in five iterations: 4:0, 3:1, 2:2, 1:3, 0:4.
TEST(Mixture, AScheduleMovesInEqualSteps) {
  EXPECT_THAT(ratio_between({1, 0}, {0, 1}, 0, 5), ElementsAre(1, 0));
  EXPECT_THAT(ratio_between({1, 0}, {0, 1}, 1, 5), ElementsAre(3, 1));
  EXPECT_THAT(ratio_between({1, 0}, {0, 1}, 2, 5), IsEmpty());
  EXPECT_THAT(ratio_between({1, 0}, {0, 1}, 3, 5), ElementsAre(1, 3));
  EXPECT_THAT(ratio_between({1, 0}, {0, 1}, 4, 5), ElementsAre(0, 1));
  // Shares 3/4 to 1/2, half way 5/8: whatever the two ratios add up to.
  EXPECT_THAT(ratio_between({3, 1}, {50, 50}, 1, 3), ElementsAre(5, 3));
  EXPECT_THAT(ratio_between({3, 1}, {1, 1}, 0, 1), ElementsAre(3, 1));
}

TEST(Mixture, RefusesARatioTooFineToCountBy) {
  EXPECT_THROW((void)interleave({uint64_t{1} << 61, 1}, 2, 480), Error);
}

}  // namespace
}  // namespace ropd::curriculum
