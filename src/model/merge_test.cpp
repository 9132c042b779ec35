#include "model/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/adapter.h"
#include "model/forward.h"
#include "support/error_of.h"
#include "support/adapters.h"
#include "support/model_files.h"
#include "support/test_data.h"

namespace ropd::model {
namespace {

using test::error_of;
using testing::HasSubstr;

class Merge : public testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  const Path base_ = directory_ / "base", adapter_ = directory_ / "adapter", merged_ = directory_ / "merged";

  std::shared_ptr<const io::ModelDirectory> write(DType dtype, bool names_content = true) {
    test::write_tiny_model(base_, test::tiny_config("Qwen2ForCausalLM", {{"intermediate_size", "96"}}), dtype);
    const io::ModelDirectory base(base_);
    const Adapter adapter =
        test::random_adapter(base.config(), {.rank = 3, .targets = {}, .ranks = {}, .alphas = {}}, 5);
    std::vector<io::StoredTensor> tensors;
    for (const auto& slot : adapter.slots())
      tensors.push_back({slot.name, DType::f32, slot.shape,
                         std::as_bytes(adapter.values().subspan(static_cast<size_t>(slot.offset),
                                                                static_cast<size_t>(slot.size)))});
    io::save_adapter_directory(adapter_,
                               {.adapter = adapter.config(),
                                .base = base_,
                                .fingerprint = io::base_fingerprint(base.tensors()),
                                .description = "",
                                .content = names_content ? io::base_content(base.tensors()) : ""},
                               tensors);
    return std::make_shared<const io::ModelDirectory>(adapter_);
  }
  void merge(const std::shared_ptr<const io::ModelDirectory>& adapter, std::optional<DType> dtype) const {
    io::save_model_directory(merged_, {.config_json = adapter->config_json()},
                             merged_tensors(adapter, dtype));
  }
  static std::vector<float> logits(const Weights& weights, Precision precision) {
    PackedBatch batch;
    batch.append(std::vector<Token>{3, 5, 8, 1, 30, 0, 7, 12});
    Workspace workspace;
    Buffer hidden(8 * 16);
    forward(hidden, weights, batch, precision, workspace);
    std::vector<float> result(8 * 32);
    weights.head.apply(result, hidden, precision);
    return result;
  }
};

TEST_F(Merge, InF32TheMergedModelGivesTheAdaptersLogitsBitForBit) {
  const auto adapter = write(DType::bf16);
  merge(adapter, DType::f32);
  const auto merged = std::make_shared<const io::ModelDirectory>(merged_);
  EXPECT_EQ(merged->adapter(), nullptr);
  for (const auto precision : {Precision::f32, Precision::bf16, Precision::bf16_tiles})
    EXPECT_EQ(logits(map_weights(merged), precision), logits(map_weights(adapter), precision));
  EXPECT_NE(logits(map_weights(adapter), Precision::f32), logits(map_base_weights(adapter), Precision::f32));
}

TEST_F(Merge, InTheBasesTypeItGivesThemWhereProductsRoundToThatType) {
  const auto adapter = write(DType::bf16);
  merge(adapter, std::nullopt);
  const auto merged = std::make_shared<const io::ModelDirectory>(merged_);
  for (const io::StoredTensor& tensor : merged->tensors()) EXPECT_EQ(tensor.dtype, DType::bf16);
  EXPECT_EQ(logits(map_weights(merged), Precision::bf16), logits(map_weights(adapter), Precision::bf16));
}

TEST_F(Merge, MasterParametersOfAnAdapterDirectoryAreTheMergedOnes) {
  const auto adapter = write(DType::f16);
  merge(adapter, DType::f32);
  const auto from_adapter = Parameters::load(*adapter),
             from_merged = Parameters::load(io::ModelDirectory(merged_));
  EXPECT_TRUE(std::ranges::equal(from_adapter.values(), from_merged.values()));
}

TEST_F(Merge, ABaseWithAFlippedBitIsRefusedByEveryWayToItsWeights) {
  (void)write(DType::bf16);
  test::flip_last_bit(base_ / "model.safetensors", "model.layers.1.mlp.up_proj.weight");  // which has 1,536 values
  const auto changed = std::make_shared<const io::ModelDirectory>(adapter_);
  const auto is_named = HasSubstr("the weights of its base " + base_.string());
  EXPECT_THAT(error_of([&] { (void)merged_tensors(changed); }), is_named);
  EXPECT_THAT(error_of([&] { (void)map_weights(changed); }), is_named);
  EXPECT_THAT(error_of([&] { (void)Parameters::load(*changed); }), is_named);
}

TEST_F(Merge, AnAdapterThatDoesNotNameAllOfItsBaseIsComparedByItsBeginnings) {
  (void)write(DType::bf16, /*names_content=*/false);
  test::flip_last_bit(base_ / "model.safetensors", "model.layers.1.mlp.up_proj.weight");
  merge(std::make_shared<const io::ModelDirectory>(adapter_), std::nullopt);
  test::flip_last_bit(base_ / "model.safetensors", "model.layers.1.self_attn.q_proj.weight");
  EXPECT_THAT(error_of([&] { (void)io::ModelDirectory(adapter_); }), HasSubstr("trained on another base"));
}

}  // namespace
}  // namespace ropd::model
