// Evaluating a real student is part of the system test of training; here is when it happens.
#include "train/run_evaluation.h"

#include <gtest/gtest.h>

namespace ropd::train {
namespace {

TEST(IsEvaluationDue, AtTheEndAndEverySoManyIterations) {
  EvalConfig config;
  EXPECT_FALSE(is_evaluation_due(config, 15, 15));
  config.suite = "three";
  EXPECT_TRUE(is_evaluation_due(config, 15, 15));
  EXPECT_FALSE(is_evaluation_due(config, 10, 15));
  config.every = 5;
  EXPECT_TRUE(is_evaluation_due(config, 10, 15));
  EXPECT_FALSE(is_evaluation_due(config, 11, 15));
}

}  // namespace
}  // namespace ropd::train
