#include "model/execution.h"

#include <gtest/gtest.h>

#include "model/weights.h"
#include "support/naive_model.h"

namespace ropd::model {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

ModelConfig with_width(int64_t intermediate_size) {
  ModelConfig config = test::tiny_config(Architecture::qwen3);
  config.intermediate_size = intermediate_size;
  return config;
}

TEST(ChooseExecution, ThreadsTakeSequencesOfAModelThatStaysInTheCache) {
  EXPECT_EQ(choose_execution(with_width(44), 16 * kGib).sharing, Sharing::sequences);
  EXPECT_EQ(choose_execution(with_width(40000), 16 * kGib).sharing, Sharing::products);
}

TEST(ChooseExecution, MemoryIsGivenBackWhereTheMachineHasLittleForTheModel) {
  const ModelConfig config = with_width(40000);
  const uint64_t bytes = static_cast<uint64_t>(parameter_count(config)) * 4;
  EXPECT_TRUE(choose_execution(config, 33 * bytes).keeps_memory);
  EXPECT_FALSE(choose_execution(config, 32 * bytes).keeps_memory);
}

TEST(ChooseExecution, TravelsWithTheWeights) {
  const Parameters small(with_width(44)), large(with_width(40000));
  EXPECT_EQ(small.weights().execution.sharing, Sharing::sequences);
  EXPECT_EQ(large.weights().execution.sharing, Sharing::products);
  EXPECT_EQ(pack_weights(small.weights(), Precision::f32).execution.sharing, Sharing::sequences);
}

}  // namespace
}  // namespace ropd::model
