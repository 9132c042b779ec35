#include "io/adapter_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "io/input_ledger.h"
#include "io/model_directory.h"
#include "io/model_path.h"
#include "io/save_model.h"
#include "support/error_of.h"
#include "support/model_files.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using test::error_of;
using test::tiny_config;
using testing::HasSubstr;

const AdapterConfig kConfig = {
    .rank = 2, .alpha = 3, .targets = {"q_proj", "up_proj"}, .ranks = {{"up_proj", 4}}, .alphas = {}};

class Adapters : public testing::Test {
 protected:
  test::TemporaryDirectory directory_;
  const Path base_ = directory_ / "base", adapter_ = directory_ / "adapter";

  void SetUp() override { test::write_tiny_model(base_, tiny_config("Qwen3ForCausalLM")); }

  test::TensorsInMemory tensors(const AdapterConfig& config, DType dtype = DType::f32) const {
    test::TensorsInMemory memory;
    for (const AdapterMatrix& m : adapter_matrices(ModelDirectory(base_).config(), config, "test")) {
      memory.add(lora_a_name(m.module), dtype, {m.rank, m.inputs});
      memory.add(lora_b_name(m.module), dtype, {m.outputs, m.rank});
    }
    return memory;
  }
  void save(const AdapterConfig& config = kConfig) const {
    save_adapter_directory(adapter_,
                           {.adapter = config,
                            .base = base_,
                            .fingerprint = base_fingerprint(ModelDirectory(base_).tensors()),
                            .description = "A test.",
                            .content = base_content(ModelDirectory(base_).tensors())},
                           tensors(config).tensors);
  }
  // What PEFT writes for plain LoRA, with some entries changed.
  std::string peft_json(const Json& changes) const {
    Json json = Json::parse(adapter_config_json(kConfig, "Qwen/Qwen3-0.6B"));
    json.update(changes);
    return json.dump();
  }
  void write_foreign(const Json& changes, const AdapterConfig& config = kConfig) const {
    std::filesystem::create_directories(adapter_);
    write_file_atomically(adapter_ / "adapter_config.json", peft_json(changes));
    write_safetensors(adapter_ / "adapter_model.safetensors", tensors(config, DType::bf16).tensors);
  }
  std::string refusal(const Json& changes) const {
    return error_of([&] { (void)parse_adapter_config(peft_json(changes), "adapter_config.json"); });
  }
};

TEST_F(Adapters, SaveLoadSaveGivesEqualBytes) {
  save();
  const ModelDirectory opened(adapter_);
  ASSERT_NE(opened.adapter(), nullptr);
  EXPECT_EQ(opened.base_path(), base_);
  EXPECT_EQ(opened.adapter()->config(), kConfig);
  EXPECT_EQ(opened.adapter()->matrices().size(), 4u);
  EXPECT_EQ(opened.adapter()->matrices()[1], (AdapterMatrix{"model.layers.0.mlp.up_proj", 24, 16, 4, 0.75f}));
  std::vector<StoredTensor> read;
  for (const StoredTensor& tensor : tensors(kConfig).tensors)
    read.push_back(opened.adapter()->tensor(tensor.name));
  const Path again = directory_ / "again";
  save_adapter_directory(again,
                         {.adapter = opened.adapter()->config(),
                          .base = opened.base_path(),
                          .fingerprint = base_fingerprint(opened.tensors()),
                          .description = "A test.",
                          .content = base_content(opened.tensors())},
                         read);
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"})
    EXPECT_EQ(read_file(adapter_ / name), read_file(again / name)) << name;
  EXPECT_THAT(read_file(again / "README.md"), HasSubstr("library_name: peft"));
}

TEST_F(Adapters, AnExistingFolderIsNotReplaced) {
  save();
  EXPECT_THAT(error_of([&] { save(); }), HasSubstr("exists already"));
}

TEST_F(Adapters, ThoseOfOthersAreReadWithTheirBaseGiven) {
  write_foreign(Json::object());
  EXPECT_THAT(error_of([&] { ModelDirectory{adapter_}; }),
              HasSubstr("'Qwen/Qwen3-0.6B', which is no folder here"));
  const ModelDirectory opened(adapter_, base_);
  EXPECT_EQ(opened.adapter()->matrices().size(), 4u);
  EXPECT_EQ(opened.text_path(), base_);
  write_file_atomically(adapter_ / "tokenizer.json", "{}");
  EXPECT_EQ(opened.text_path(), adapter_);
}

TEST_F(Adapters, PatternsAndSomeLayersAreWhatTheTensorsSay) {
  AdapterConfig one = kConfig;
  one.targets = {"layers.1.self_attn.q_proj"};
  one.ranks.clear();
  write_foreign({{"target_modules", ".*q_proj"}, {"rank_pattern", Json::object()}}, one);
  const ModelDirectory by_pattern(adapter_, base_);
  ASSERT_EQ(by_pattern.adapter()->matrices().size(), 1u);
  EXPECT_EQ(by_pattern.adapter()->config().targets,
            (std::vector<std::string>{"model.layers.1.self_attn.q_proj"}));
  write_foreign(
      {{"target_modules", {"q_proj"}}, {"layers_to_transform", {1}}, {"rank_pattern", Json::object()}}, one);
  EXPECT_EQ(ModelDirectory(adapter_, base_).adapter()->matrices().size(), 1u);
  // Without either, a missing layer is damage.
  write_foreign({{"target_modules", {"q_proj"}}, {"rank_pattern", Json::object()}}, one);
  EXPECT_THAT(error_of([&] { ModelDirectory(adapter_, base_); }),
              HasSubstr("holds no base_model.model.model.layers.0"));
}

TEST_F(Adapters, WhatIsNotComputedIsRefusedByName) {
  EXPECT_EQ(refusal(Json::object()), "no error");
  EXPECT_THAT(refusal({{"use_dora", true}}), HasSubstr("DoRA"));
  EXPECT_THAT(refusal({{"peft_type", "IA3"}}), HasSubstr("'IA3'"));
  EXPECT_THAT(refusal({{"init_lora_weights", "pissa_niter_4"}}), HasSubstr("PiSSA"));
  EXPECT_THAT(refusal({{"init_lora_weights", "olora"}}), HasSubstr("OLoRA"));
  EXPECT_EQ(refusal({{"init_lora_weights", "gaussian"}}), "no error");
  EXPECT_THAT(refusal({{"lora_dropout", 0.05}}), HasSubstr("lora_dropout is 0.05"));
  EXPECT_THAT(refusal({{"bias", "lora_only"}}), HasSubstr("bias is 'lora_only'"));
  EXPECT_THAT(refusal({{"modules_to_save", {"lm_head"}}}), HasSubstr("modules_to_save"));
  EXPECT_THAT(refusal({{"layer_replication", {{0, 1}}}}), HasSubstr("layer_replication"));
  EXPECT_THAT(refusal({{"trainable_token_indices", {1, 2}}}), HasSubstr("trainable_token_indices"));
  EXPECT_THAT(refusal({{"use_qalora", true}}), HasSubstr("use_qalora"));
  EXPECT_THAT(refusal({{"rank_pattern", {{".*\\.q_proj", 3}}}}),
              HasSubstr("regular expressions are not read"));
  EXPECT_THAT(refusal({{"r", "many"}}), HasSubstr("r is \"many\", expected a whole number"));
  EXPECT_THAT(refusal({{"r", 16.5}}), HasSubstr("r is 16.5, expected a whole number"));
  EXPECT_THAT(refusal({{"r", true}}), HasSubstr("r is true"));
  EXPECT_THAT(refusal({{"lora_alpha", "1"}}), HasSubstr("lora_alpha is \"1\", expected a number"));
  EXPECT_THAT(refusal({{"rank_pattern", {{"q_proj", 2.5}}}}), HasSubstr("rank_pattern of q_proj is 2.5"));
  EXPECT_THAT(refusal({{"use_rslora", 1}}), HasSubstr("not as PEFT writes it"));
  EXPECT_THAT(error_of([] { (void)parse_adapter_config("[]", "f"); }), HasSubstr("expected an object"));
}

TEST_F(Adapters, AnotherBaseIsRefusedByShapeOrByFingerprint) {
  save();
  const Path wider = directory_ / "wider", tuned = directory_ / "tuned", same = directory_ / "same";
  test::write_tiny_model(wider, tiny_config("Qwen3ForCausalLM", {{"hidden_size", "32"}}));
  EXPECT_THAT(error_of([&] { ModelDirectory(adapter_, wider); }), HasSubstr("another base?"));
  test::write_tiny_model(tuned, tiny_config("Qwen3ForCausalLM"), DType::f32, /*seed=*/2);
  EXPECT_THAT(error_of([&] { ModelDirectory(adapter_, tuned); }), HasSubstr("trained on another base"));
  std::filesystem::copy(base_, same, std::filesystem::copy_options::recursive);
  EXPECT_EQ(error_of([&] { ModelDirectory(adapter_, same); }), "no error");
  EXPECT_THAT(error_of([&] { ModelDirectory(base_, same); }), HasSubstr("a base is for adapters"));
  EXPECT_THAT(error_of([&] { (void)find_base(adapter_, adapter_); }), HasSubstr("is an adapter itself"));
}

TEST_F(Adapters, UnknownTargetsTensorsAndRanksAreNamed) {
  write_foreign({{"target_modules", {"fc1"}}, {"rank_pattern", Json::object()}});
  EXPECT_THAT(error_of([&] { ModelDirectory(adapter_, base_); }), HasSubstr("unknown target 'fc1'"));
  write_foreign({{"r", 17}, {"rank_pattern", Json::object()}});
  EXPECT_THAT(error_of([&] { ModelDirectory(adapter_, base_); }), HasSubstr("rank 17 of"));
  write_foreign({{"r", 3}});
  EXPECT_THAT(error_of([&] { ModelDirectory(adapter_, base_); }),
              HasSubstr("has shape [2, 16], expected [3, 16]"));
  auto extra = tensors(kConfig);
  extra.add("base_model.model.lm_head.lora_A.weight", DType::f32, {2, 16});
  write_foreign(Json::object());
  write_safetensors(adapter_ / "adapter_model.safetensors", extra.tensors);
  EXPECT_THAT(error_of([&] { ModelDirectory(adapter_, base_); }), HasSubstr("lm_head.lora_A"));
}

TEST_F(Adapters, AreFoundWhereModelsAre) {
  save();
  EXPECT_TRUE(is_model(adapter_));
  EXPECT_EQ(find_model(adapter_), adapter_);
  EXPECT_EQ(base_of(adapter_), base_);
  EXPECT_EQ(base_of(base_), base_);
  std::vector<std::string> names;
  for (const InputFile& file : model_files(adapter_)) names.push_back(file.name);
  EXPECT_THAT(names, testing::ElementsAre("adapter_config.json", "adapter_model.safetensors",
                                          "base/config.json", "base/model.safetensors"));
}

// bf16 as f32.
test::TensorsInMemory widened(const test::TensorsInMemory& half) {
  test::TensorsInMemory wide;
  for (const StoredTensor& tensor : half.tensors) {
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < tensor.bytes.size(); i += 2) {
      bytes.insert(bytes.end(), 2, std::byte{0});  // bf16 is the upper half of f32
      bytes.insert(bytes.end(), tensor.bytes.begin() + static_cast<ptrdiff_t>(i),
                   tensor.bytes.begin() + static_cast<ptrdiff_t>(i + 2));
    }
    wide.data.push_back(std::move(bytes));
    wide.tensors.push_back({tensor.name, DType::f32, tensor.shape, wide.data.back()});
  }
  return wide;
}

TEST(BaseFingerprint, IsOfTheNumbersAndNotOfTheirType) {
  const std::string config = tiny_config("Qwen3ForCausalLM");
  const auto half = test::tensors_for(config, DType::bf16), other = test::tensors_for(config, DType::bf16, 2),
             wide = widened(half);
  EXPECT_EQ(base_fingerprint(half.tensors), base_fingerprint(wide.tensors));
  EXPECT_NE(base_fingerprint(half.tensors), base_fingerprint(other.tensors));
}

TEST(BaseContent, IsOfTheNumbersAndNotOfTheirTypeOrFiles) {
  const std::string config = tiny_config("Qwen3ForCausalLM");
  const auto half = test::tensors_for(config, DType::bf16);
  EXPECT_EQ(base_content(half.tensors), base_content(widened(half).tensors));
  const test::TemporaryDirectory folder;
  save_model_directory(folder / "sharded", {.config_json = config, .max_shard_bytes = 4000}, half.tensors);
  const ModelDirectory sharded(folder / "sharded");
  EXPECT_GT(sharded.num_files(), 1);
  EXPECT_EQ(base_content(half.tensors), base_content(sharded.tensors()));
}

TEST(BaseContent, ShowsAFlippedBitOfEveryTensor) {
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    // Its embeddings have more values than a fingerprint reads.
    auto model = test::tensors_for(tiny_config("Qwen3ForCausalLM", {{"vocab_size", "128"}}), dtype);
    const std::string content = base_content(model.tensors);
    for (auto& data : model.data) {
      data.back() ^= std::byte{1};
      EXPECT_NE(base_content(model.tensors), content);
      data.back() ^= std::byte{1};
    }
    EXPECT_EQ(base_content(model.tensors), content);
  }
}

}  // namespace
}  // namespace ropd::io
