#include "io/save_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "io/model_directory.h"
#include "support/kill_at_system_call.h"
#include "support/model_files.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using testing::HasSubstr;

void expect_equal_tensors(const ModelDirectory& a, const ModelDirectory& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    EXPECT_EQ(a.tensors()[i].name, b.tensors()[i].name);
    EXPECT_EQ(a.tensors()[i].dtype, b.tensors()[i].dtype);
    EXPECT_EQ(a.tensors()[i].shape, b.tensors()[i].shape);
    EXPECT_TRUE(std::ranges::equal(a.tensors()[i].bytes, b.tensors()[i].bytes)) << a.tensors()[i].name;
  }
}

class SaveModel : public testing::Test {
 protected:
  test::TemporaryDirectory directory;
  Path source = directory / "source", copy = directory / "copy";
  void write_source(const std::string& config, DType dtype = DType::f32) {
    test::write_tiny_model(source, config, dtype);
  }
  void save(const ModelDirectory& model, uint64_t max_shard_bytes = 5'000'000'000) {
    save_model_directory(copy,
                         {.source_directory = source,
                          .config_json = model.config_json(),
                          .generation_config_json = model.generation_config_json(),
                          .max_shard_bytes = max_shard_bytes},
                         model.tensors());
  }
  // And what killed saves left: removing it would shift the next one's system calls.
  void remove_copies() const {
    std::vector<Path> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
      if (entry.path().filename().string().starts_with("copy")) found.push_back(entry.path());
    for (const Path& path : found) std::filesystem::remove_all(path);
  }
  std::string save_error(const ModelDirectory& model) {
    try {
      save(model);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(SaveModel, LoadSaveLoadGivesIdenticalTensorBytes) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const char* name = dtype == DType::f32   ? "\"float32\""
                       : dtype == DType::f16 ? "\"float16\""
                                             : "\"bfloat16\"";
    write_source(test::tiny_config("Qwen3MoeForCausalLM", {{"torch_dtype", name}}), dtype);
    const ModelDirectory model(source);
    save(model);
    expect_equal_tensors(model, ModelDirectory(copy));
    EXPECT_EQ(read_file(copy / "config.json"), model.config_json());
    std::filesystem::remove_all(copy);
  }
}

TEST(TensorToSave, IsStoredAsItIsOrRoundedToNearestEven) {
  std::vector<float> values(300'000);  // more than one piece
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f + static_cast<float>(i) * 0x1p-20f;
  const auto bytes_of = [&](DType stored) {
    std::string bytes;
    tensor_to_save("a", {300'000}, values, stored).produce([&](std::span<const std::byte> piece) {
      bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    });
    return bytes;
  };
  const std::string exact = bytes_of(DType::f32), rounded = bytes_of(DType::bf16);
  EXPECT_EQ(std::memcmp(exact.data(), values.data(), exact.size()), 0);
  ASSERT_EQ(exact.size(), 4 * values.size());
  ASSERT_EQ(rounded.size(), 2 * values.size());
  for (const size_t i : {0, 1, 4095, 4096, 4097, 12288, 262'143, 262'144, 299'999}) {
    Bf16 stored;
    std::memcpy(&stored, rounded.data() + 2 * i, sizeof stored);
    EXPECT_EQ(bf16_to_float(stored), std::nearbyint(values[i] * 128) / 128) << i;
  }
}

TEST_F(SaveModel, SavingTwiceGivesEqualFiles) {
  write_source(test::tiny_config("Qwen2ForCausalLM"));
  save(ModelDirectory(source));
  const ModelDirectory once(copy);
  save_model_directory(directory / "twice", {.config_json = once.config_json()}, once.tensors());
  EXPECT_EQ(read_file(copy / "model.safetensors"), read_file(directory / "twice" / "model.safetensors"));
}

TEST_F(SaveModel, SplitsIntoShardsAtTheLimit) {
  write_source(test::tiny_config("Qwen3ForCausalLM"));
  const ModelDirectory model(source);
  save(model, /*max_shard_bytes=*/5000);
  const ModelDirectory sharded(copy);
  EXPECT_EQ(sharded.num_files(), 7);
  expect_equal_tensors(model, sharded);
  EXPECT_TRUE(std::filesystem::exists(copy / "model-00001-of-00007.safetensors"));
  EXPECT_THAT(read_file(copy / "model.safetensors.index.json"), HasSubstr("\"total_size\": 26048"));
  for (const auto& entry : std::filesystem::directory_iterator(copy)) {
    if (entry.path().extension() == ".safetensors") {
      EXPECT_LE(entry.file_size(), 5000u + 2000u) << entry.path();
    }
  }
}

TEST_F(SaveModel, LeavesOutATiedHead) {
  write_source(test::tiny_config("Qwen3ForCausalLM", {{"tie_word_embeddings", "true"}}));
  write_safetensors(source / "model.safetensors",
                    test::tensors_for(test::tiny_config("Qwen3ForCausalLM")).tensors);
  const ModelDirectory model(source);
  ASSERT_NE(model.find("lm_head.weight"), nullptr);
  save(model);
  EXPECT_EQ(ModelDirectory(copy).find("lm_head.weight"), nullptr);
}

TEST_F(SaveModel, CopiesTokenizerAndTemplateFilesUnchanged) {
  write_source(test::tiny_config("Qwen3ForCausalLM"));
  const std::vector<std::string> names = {"tokenizer.json", "tokenizer_config.json", "merges.txt",
                                          "chat_template.jinja", "LICENSE"};
  for (const auto& name : names) write_file_atomically(source / name, name + " \x01\xff\r\n");
  write_file_atomically(source / "pytorch_model.bin", "old weights");
  write_file_atomically(source / "generation_config.json", "{ \"eos_token_id\": [3]}");
  save(ModelDirectory(source));
  for (const auto& name : names) EXPECT_EQ(read_file(copy / name), name + " \x01\xff\r\n");
  EXPECT_EQ(read_file(copy / "generation_config.json"), "{ \"eos_token_id\": [3]}");
  EXPECT_FALSE(std::filesystem::exists(copy / "pytorch_model.bin"));
}

TEST_F(SaveModel, WritesAModelCardWithFrontMatter) {
  write_source(test::tiny_config("Qwen3ForCausalLM"));
  const ModelDirectory model(source);
  save_model_directory(
      copy, {.config_json = model.config_json(), .base_model = "Qwen/Qwen3-0.6B", .description = "Trained."},
      model.tensors());
  EXPECT_EQ(
      read_file(copy / "README.md"),
      "---\nlibrary_name: transformers\npipeline_tag: text-generation\nbase_model: \"Qwen/Qwen3-0.6B\"\n"
      "tags:\n- on-policy-distillation\n- ropd\n---\n\n# copy\n\nTrained.\n");
}

TEST_F(SaveModel, ConfigNamesTheStoredDtype) {
  write_source(test::tiny_config("Qwen3ForCausalLM"));
  const auto memory = test::tensors_for(test::tiny_config("Qwen3ForCausalLM"), DType::bf16);
  save_model_directory(copy, {.config_json = test::tiny_config("Qwen3ForCausalLM")}, memory.tensors);
  EXPECT_EQ(ModelDirectory(copy).config().dtype, "bfloat16");
}

TEST_F(SaveModel, ProducesTensorsPieceByPiece) {
  const auto config = test::tiny_config("LlamaForCausalLM");
  const auto memory = test::tensors_for(config);
  const auto to_save = [&](size_t piece) {
    std::vector<TensorToSave> tensors;
    for (const auto& tensor : memory.tensors) {
      tensors.push_back(
          {{tensor.name, tensor.dtype, tensor.shape}, [&tensor, piece](const TensorToSave::Sink& sink) {
             for (auto rest = tensor.bytes; !rest.empty();) {
               const auto count = std::min(piece, rest.size());
               sink(rest.first(count));
               rest = rest.subspan(count);
             }
           }});
    }
    return tensors;
  };
  save_model_directory(copy, {.config_json = config}, to_save(7));
  save_model_directory(source, {.config_json = config}, memory.tensors);
  EXPECT_EQ(read_file(copy / "model.safetensors"), read_file(source / "model.safetensors"));
  auto broken = to_save(7);
  broken[0].produce = [](const TensorToSave::Sink&) {};
  EXPECT_THROW(save_model_directory(directory / "broken", {.config_json = config}, broken), Error);
  EXPECT_FALSE(std::filesystem::exists(directory / "broken"));
}

TEST_F(SaveModel, RefusesToReplaceAnythingButAnEmptyFolder) {
  write_source(test::tiny_config("Qwen3ForCausalLM"));
  const ModelDirectory model(source);
  std::filesystem::create_directory(copy);
  save(model);
  EXPECT_THAT(save_error(model), HasSubstr("exists already"));
}

TEST_F(SaveModel, RefusesTensorsThatDoNotFitTheConfigAndLeavesNothing) {
  write_source(test::tiny_config("Qwen3ForCausalLM"));
  const ModelDirectory model(source);
  EXPECT_THROW(
      save_model_directory(copy, {.config_json = model.config_json()}, std::span(model.tensors()).subspan(1)),
      Error);
  EXPECT_FALSE(std::filesystem::exists(copy));
  EXPECT_THROW(
      save_model_directory(directory / "no/where", {.config_json = model.config_json()}, model.tensors()),
      Error);
}

TEST_F(SaveModel, KilledAtAnySystemCallLeavesNoModelOrAWholeOne) {
  write_source(test::tiny_config("LlamaForCausalLM", {{"num_hidden_layers", "1"}}));
  write_file_atomically(source / "tokenizer.json", "{}");
  const ModelDirectory model(source);
  int num_whole = 0;
  const int calls =
      test::kill_at_every_system_call([&] { remove_copies(); }, [&] { save(model); },
                                      [&](int) {
                                        if (!std::filesystem::exists(copy)) return;
                                        expect_equal_tensors(model, ModelDirectory(copy));
                                        EXPECT_EQ(read_file(copy / "tokenizer.json"), "{}");
                                        EXPECT_TRUE(std::filesystem::exists(copy / "README.md"));
                                        ++num_whole;
                                      });
  EXPECT_GE(calls, 30);
  EXPECT_GE(num_whole, 3);
  EXPECT_LE(num_whole, 7);  // only the calls behind the rename
}

TEST_F(SaveModel, RemovesWhatAKilledSaveLeft) {
  const Path stale = copy.string() + ".tmp-1";
  std::filesystem::create_directories(stale / "inner");
  std::filesystem::create_directories(copy.string() + ".tmp-mine");
  write_source(test::tiny_config("LlamaForCausalLM"));
  save(ModelDirectory(source));
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_TRUE(std::filesystem::exists(copy.string() + ".tmp-mine")) << "no name of ours";
}

TEST_F(SaveModel, SavesTheSharedModelsUnchanged) {
  ROPD_NEEDS_DATA();
  for (const char* name : {"qwen3_tiny", "stories260K"}) {
    const ModelDirectory model(test::data_directory() / "models" / name);
    save(model);
    expect_equal_tensors(model, ModelDirectory(copy));
    std::filesystem::remove_all(copy);
  }
}

}  // namespace
}  // namespace ropd::io
