// The whole experiment runs in tests/system/lab_test.cpp; here are its decisions.
#include "lab/experiment.h"

#include <gtest/gtest.h>

#include "train/minibatch.h"

namespace ropd::lab {
namespace {

TEST(LabTrainConfig, IsThePapersIterationOnLabModels) {
  const auto config = lab_train_config({}, "models", "data", 3);
  EXPECT_EQ(config.train.responses_per_iteration, 480u);
  EXPECT_EQ(train::minibatch_sizes(480, config.train.minibatch), (std::vector<uint64_t>{128, 128, 128, 96}));
  LabOptions small;
  small.responses_per_iteration = 32;
  EXPECT_EQ(lab_train_config(small, "models", "data", 3).train.minibatch, 8u);
  EXPECT_EQ(config.seed, 3u);
  EXPECT_EQ(config.data.order_seed, 3u);
  EXPECT_EQ(config.rollout.max_response_tokens, 256u);
}

}  // namespace
}  // namespace ropd::lab
