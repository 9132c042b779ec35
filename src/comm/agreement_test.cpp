#include "comm/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/thread_world.h"

namespace ropd::comm {
namespace {

std::string disagreement(const Facts& of_the_last) {
  try {
    run_thread_world(3, [&](World& world) {
      const Facts own = {{"program", "1.0 (abc)"}, {"instruction set", "AVX2"}};
      require_agreement(world, world.rank() == 2 ? of_the_last : own);
    });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Agreement, EqualRanksGoOn) {
  EXPECT_EQ(disagreement({{"program", "1.0 (abc)"}, {"instruction set", "AVX2"}}), "");
}

TEST(Agreement, DifferenceNamesRankFactAndBothValues) {
  EXPECT_THAT(disagreement({{"program", "1.0 (abc)"}, {"instruction set", "AVX3_ZEN4"}}),
              testing::AllOf(testing::HasSubstr("rank 2"), testing::HasSubstr("instruction set is AVX3_ZEN4"),
                             testing::HasSubstr("rank 0 has AVX2")));
}

TEST(Agreement, FactThatOneRankDoesNotHaveIsADifference) {
  EXPECT_THAT(disagreement({{"program", "1.0 (abc)"}}), testing::HasSubstr("instruction set is nothing"));
  EXPECT_THAT(disagreement({{"program", "1.0 (abc)"}, {"instruction set", "AVX2"}, {"teacher files", "x"}}),
              testing::HasSubstr("teacher files is x"));
}

}  // namespace
}  // namespace ropd::comm
