#include "model/bounded_model.h"

#include <gtest/gtest.h>

#include "model/forward.h"
#include "support/model_files.h"
#include "support/test_data.h"

namespace ropd::model {
namespace {

class BoundedModelTest : public testing::Test {
 protected:
  BoundedModelTest() {
    test::write_tiny_model(folder_ / "model", test::tiny_config("Qwen3ForCausalLM"));
    directory_ = std::make_shared<const io::ModelDirectory>(folder_ / "model");
  }
  const test::TemporaryDirectory folder_;
  std::shared_ptr<const io::ModelDirectory> directory_;

  BoundedModel within(std::optional<uint64_t> bytes) const {
    return {directory_, map_weights(directory_), bytes};
  }
  uint64_t needed(int64_t tokens) const {
    return directory_->num_bytes() +
           static_cast<uint64_t>(tokens) * forward_bytes_per_token(directory_->config());
  }
};

TEST_F(BoundedModelTest, IsStreamedExactlyWhereItAndABatchDoNotFit) {
  EXPECT_EQ(within(needed(100)).weights(100).stream, nullptr);
  EXPECT_NE(within(needed(100) - 1).weights(100).stream, nullptr);
  EXPECT_NE(within(needed(100)).weights(101).stream, nullptr);
  EXPECT_NE(within(0).weights(1).stream, nullptr);
}

TEST_F(BoundedModelTest, WithoutANumberATinyModelFits) {
  EXPECT_EQ(within(std::nullopt).weights(1).stream, nullptr);
}

TEST_F(BoundedModelTest, CountsThePassesOfItsStream) {
  BoundedModel model = within(0);
  EXPECT_EQ(model.counts().passes, 0u);
  for (uint64_t pass = 1; pass <= 2; ++pass) {
    const Weights weights = model.weights(1);
    PackedBatch batch;
    batch.append(std::vector<Token>{1, 2});
    Workspace workspace;
    Buffer hidden(2 * static_cast<size_t>(weights.config.hidden_size));
    forward(hidden, weights, batch, Precision::f32, workspace);
    EXPECT_EQ(model.counts().passes, pass);
  }
}

}  // namespace
}  // namespace ropd::model
