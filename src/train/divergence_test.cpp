#include "train/divergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ropd::train {
namespace {

IterationRecord record(uint64_t iteration, const std::string& source, double kl, double grad_norm = 1) {
  IterationRecord r;
  r.iteration = iteration;
  r.policy_step = 4 * (iteration - 1);
  r.step = 4 * iteration;
  r.source = source;
  r.grad_norm = grad_norm;
  r.distillation.kl_candidates = kl;
  return r;
}

TEST(Divergence, IsAKlFarAboveWhereItsSourceBegan) {
  DivergenceWatch watch(2);
  EXPECT_FALSE(watch.observe(record(1, "current", 0.38)));
  EXPECT_FALSE(watch.observe(record(2, "current", 0.7)));
  EXPECT_FALSE(watch.observe(record(3, "initial", 1.9))) << "another source has its own beginning";
  EXPECT_FALSE(watch.has_diverged());
  const auto alarm = watch.observe(record(4, "current", 11.7));
  ASSERT_TRUE(alarm);
  EXPECT_THAT(*alarm, testing::HasSubstr("KL is 11.7 a token, it was 0.38"));
  EXPECT_TRUE(watch.has_diverged());
}

// The KL of iteration 4 is that of the weights after step 12, so step 8 is the last known to be good.
TEST(Divergence, TheLastGoodStepIsThatOfTheLastGoodMeasurement) {
  DivergenceWatch watch(2);
  for (uint64_t k = 1; k <= 3; ++k) (void)watch.observe(record(k, "current", 0.3));
  (void)watch.observe(record(4, "current", 5));
  EXPECT_EQ(watch.last_good_step(), 8u);
  (void)watch.observe(record(5, "current", 0.3));
  EXPECT_EQ(watch.last_good_step(), 8u) << "nothing behind it is trusted again";
}

TEST(Divergence, IsAlsoAGradientOfZero) {
  DivergenceWatch watch(2);
  EXPECT_FALSE(watch.observe(record(1, "current", 0.38)));
  EXPECT_TRUE(watch.observe(record(2, "current", 0.38, 0)));
}

TEST(Divergence, CanBeSwitchedOff) {
  DivergenceWatch watch(0);
  (void)watch.observe(record(1, "current", 0.38));
  EXPECT_FALSE(watch.observe(record(2, "current", 100, 0)));
}

}  // namespace
}  // namespace ropd::train
