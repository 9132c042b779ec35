#include "io/model_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/model_files.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(const Path& directory) {
  try {
    ModelDirectory model(directory);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A directory whose two shards and index a test then breaks.
void write_sharded_model(const Path& directory, const std::string& config) {
  write_file_atomically(directory / "config.json", config);
  const auto memory = test::tensors_for(config);
  const size_t half = memory.tensors.size() / 2;
  write_safetensors(directory / "a.safetensors", std::span(memory.tensors).first(half));
  write_safetensors(directory / "b.safetensors", std::span(memory.tensors).subspan(half));
  std::string map;
  for (size_t i = 0; i < memory.tensors.size(); ++i) {
    map += std::string(i ? "," : "") + "\"" + memory.tensors[i].name + "\":\"" + (i < half ? "a" : "b") +
           ".safetensors\"";
  }
  write_file_atomically(directory / "model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
}

void replace_in_file(const Path& path, const std::string& from, const std::string& to) {
  std::string text = read_file(path);
  const auto place = text.find(from);
  ASSERT_NE(place, std::string::npos);
  write_file_atomically(path, text.replace(place, from.size(), to));
}

const char* kIndex = "model.safetensors.index.json";

TEST(ModelDirectory, ReleasedPagesReadTheSameAgain) {
  const test::TemporaryDirectory directory;
  test::write_tiny_model(directory.path(), test::tiny_config("Qwen3ForCausalLM"));
  const ModelDirectory model(directory.path());
  std::vector<std::string> before;
  uint64_t bytes = 0;
  for (const auto& tensor : model.tensors()) {
    before.push_back(sha256(tensor.bytes));
    bytes += tensor.bytes.size();
  }
  EXPECT_EQ(model.num_bytes(), bytes);
  model.release_pages();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(sha256(model.tensors()[i].bytes), before[i]);
}

// Llama 2 and its children store them: as transformers, we compute the frequencies from config.json.
TEST(ModelDirectory, StoredRotaryFrequenciesAreNotRead) {
  const test::TemporaryDirectory directory;
  const std::string config = test::tiny_config("LlamaForCausalLM");
  test::write_tiny_model(directory / "plain", config);
  const ModelDirectory plain(directory / "plain");
  const std::vector<float> frequencies = {1, 0.1f};
  std::vector<StoredTensor> tensors = plain.tensors();
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq",
                     DType::f32,
                     {2},
                     std::as_bytes(std::span(frequencies))});
  std::string map;
  for (const auto& tensor : tensors)
    map += (map.empty() ? "\"" : ", \"") + tensor.name + "\": \"a.safetensors\"";
  map += ", \"model.layers.1.self_attn.rotary_emb.inv_freq\": \"a.safetensors\"";  // named, not stored
  for (const char* name : {"single", "sharded"}) {
    std::filesystem::create_directories(directory / name);
    write_file_atomically(directory / name / "config.json", config);
  }
  write_safetensors(directory / "single" / "model.safetensors", tensors);
  write_safetensors(directory / "sharded" / "a.safetensors", tensors);
  // Without metadata, as some tools write it.
  write_file_atomically(directory / "sharded" / kIndex, "{\"weight_map\": {" + map + "}}");
  for (const char* name : {"single", "sharded"})
    EXPECT_EQ(ModelDirectory(directory / name).tensors().size(), plain.tensors().size()) << name;
}

TEST(ModelDirectory, OpensEveryArchitecture) {
  for (const char* name :
       {"Qwen3ForCausalLM", "Qwen2ForCausalLM", "LlamaForCausalLM", "Qwen3MoeForCausalLM"}) {
    const test::TemporaryDirectory directory;
    test::write_tiny_model(directory.path(), test::tiny_config(name));
    const ModelDirectory model(directory.path());
    EXPECT_EQ(architecture_name(model.config().architecture), name);
    EXPECT_EQ(model.tensors().size(), expected_tensors(model.config()).size());
    EXPECT_EQ(model.tensor("model.norm.weight").shape, std::vector<int64_t>{16});
    EXPECT_EQ(model.find("x"), nullptr);
    EXPECT_EQ(model.generation().eos_ids, std::vector<Token>{2});
  }
}

TEST(ModelDirectory, ExpectedTensorsFollowTheArchitecture) {
  const auto count = [](const char* name, const char* tied) {
    return expected_tensors(parse_model_config(test::tiny_config(name, {{"tie_word_embeddings", tied}}), "c"))
        .size();
  };
  EXPECT_EQ(count("LlamaForCausalLM", "true"), 2 + 2 * 9u);
  EXPECT_EQ(count("LlamaForCausalLM", "false"), 3 + 2 * 9u);
  EXPECT_EQ(count("Qwen3ForCausalLM", "true"), 2 + 2 * 11u);
  EXPECT_EQ(count("Qwen2ForCausalLM", "true"), 2 + 2 * 12u);
  EXPECT_EQ(count("Qwen3MoeForCausalLM", "true"), 2 + 2 * (8 + 1 + 4 * 3u));
}

TEST(ModelDirectory, OpensShards) {
  const test::TemporaryDirectory directory;
  write_sharded_model(directory.path(), test::tiny_config("Qwen3ForCausalLM"));
  const ModelDirectory model(directory.path());
  EXPECT_EQ(model.num_files(), 2);
  EXPECT_EQ(model.num_parameters(),
            2 * 32 * 16 + 16 + 2 * (16 * (32 + 16 + 16 + 32) + 2 * 8 + 2 * 16 + 3 * 24 * 16));
}

TEST(ModelDirectory, GenerationConfigNamesTheEosIds) {
  const test::TemporaryDirectory directory;
  test::write_tiny_model(directory.path(), test::tiny_config("Qwen3ForCausalLM"));
  write_file_atomically(directory / "generation_config.json", R"({"eos_token_id": [5, 6]})");
  EXPECT_EQ(ModelDirectory(directory.path()).generation().eos_ids, (std::vector<Token>{5, 6}));
}

TEST(ModelDirectory, RefusesAFolderWithoutModel) {
  const test::TemporaryDirectory directory;
  EXPECT_THAT(error_of(directory.path()), HasSubstr("config.json: cannot open"));
  write_file_atomically(directory / "config.json", test::tiny_config("Qwen3ForCausalLM"));
  EXPECT_THAT(error_of(directory.path()), HasSubstr("holds neither model.safetensors nor"));
  EXPECT_THAT(error_of(directory / "no"), HasSubstr("is not a folder"));
}

TEST(ModelDirectory, RefusesShardNamesWithPathParts) {
  for (const char* name : {"../a.safetensors", "/etc/passwd", "sub/a", "..", "", "a\\\\b", "a\\u0000b"}) {
    const std::string index = std::string(R"({"weight_map": {"x": ")") + name + "\"}}";
    EXPECT_THROW(parse_shard_index(index, "i"), Error) << name;
  }
  const test::TemporaryDirectory directory;
  write_sharded_model(directory.path(), test::tiny_config("Qwen3ForCausalLM"));
  replace_in_file(directory / kIndex, "\"a.safetensors", "\"../a.safetensors");
  EXPECT_THAT(error_of(directory.path()), HasSubstr("is '../a.safetensors', expected a plain file name"));
}

TEST(ModelDirectory, RefusesABrokenIndex) {
  for (const char* index : {"[]", "{}", R"({"weight_map": []})", R"({"weight_map": {}})",
                            R"({"weight_map": {"a": 1}})", R"({"weight_map": {"a": "x", "a": "y"}})", "{"}) {
    EXPECT_THROW(parse_shard_index(index, "i"), Error) << index;
  }
}

TEST(ModelDirectory, NamesMissingShards) {
  const test::TemporaryDirectory directory;
  write_sharded_model(directory.path(), test::tiny_config("Qwen3ForCausalLM"));
  std::filesystem::remove(directory / "b.safetensors");
  EXPECT_THAT(error_of(directory.path()), HasSubstr("missing shards: b.safetensors"));
}

TEST(ModelDirectory, NamesTensorsInTheWrongShard) {
  const test::TemporaryDirectory directory;
  write_sharded_model(directory.path(), test::tiny_config("Qwen3ForCausalLM"));
  replace_in_file(directory / kIndex, R"("model.embed_tokens.weight":"a)",
                  R"("model.embed_tokens.weight":"b)");
  EXPECT_THAT(error_of(directory.path()),
              HasSubstr("'model.embed_tokens.weight' should be in b.safetensors, it is in a.safetensors"));
}

TEST(ModelDirectory, NamesTensorsThatIndexOrShardsLack) {
  const test::TemporaryDirectory directory;
  write_sharded_model(directory.path(), test::tiny_config("Qwen3ForCausalLM"));
  replace_in_file(directory / kIndex, R"("model.embed_tokens.weight":"a.safetensors",)", "");
  EXPECT_THAT(error_of(directory.path()),
              HasSubstr("does not name tensor 'model.embed_tokens.weight' of a.safetensors"));
  replace_in_file(directory / kIndex, R"({"weight_map":{)",
                  R"({"weight_map":{"ghost":"a.safetensors","model.embed_tokens.weight":"a.safetensors",)");
  EXPECT_THAT(error_of(directory.path()), HasSubstr("the shards do not hold: ghost (a.safetensors)"));
}

TEST(ModelDirectory, NamesMissingWeights) {
  const test::TemporaryDirectory directory;
  const auto config = test::tiny_config("Qwen3ForCausalLM");
  auto memory = test::tensors_for(config);
  std::erase_if(memory.tensors, [](const auto& tensor) { return tensor.name.ends_with("k_norm.weight"); });
  test::write_tiny_model(directory.path(), config);
  write_safetensors(directory / "model.safetensors", memory.tensors);
  EXPECT_THAT(error_of(directory.path()),
              HasSubstr("missing for Qwen3ForCausalLM: model.layers.0.self_attn.k_norm.weight, "
                        "model.layers.1.self_attn.k_norm.weight"));
}

TEST(ModelDirectory, NamesExtraWeights) {
  const test::TemporaryDirectory directory;
  const auto config = test::tiny_config("Qwen3ForCausalLM");
  auto memory = test::tensors_for(config);
  for (int i = 0; i < 10; ++i) memory.add("extra." + std::to_string(i), DType::f32, {1});
  test::write_tiny_model(directory.path(), config);
  write_safetensors(directory / "model.safetensors", memory.tensors);
  EXPECT_THAT(error_of(directory.path()), AllOf(HasSubstr("not part of Qwen3ForCausalLM"),
                                                HasSubstr("extra.0, extra.1"), HasSubstr("and 2 more")));
}

TEST(ModelDirectory, NamesWronglyShapedWeights) {
  const test::TemporaryDirectory directory;
  test::write_tiny_model(directory.path(), test::tiny_config("Qwen3ForCausalLM"));
  write_file_atomically(directory / "config.json",
                        test::tiny_config("Qwen3ForCausalLM", {{"intermediate_size", "23"}}));
  EXPECT_THAT(
      error_of(directory.path()),
      HasSubstr(
          "tensor 'model.layers.0.mlp.gate_proj.weight' has shape [24, 16], config.json asks for [23, 16]"));
}

TEST(ModelDirectory, TiedHeadMayBePresentOrAbsent) {
  const test::TemporaryDirectory directory;
  const auto tied = test::tiny_config("Qwen3ForCausalLM", {{"tie_word_embeddings", "true"}});
  test::write_tiny_model(directory.path(), tied);
  const auto without = ModelDirectory(directory.path()).num_parameters();
  write_safetensors(directory / "model.safetensors",
                    test::tensors_for(test::tiny_config("Qwen3ForCausalLM")).tensors);
  EXPECT_EQ(ModelDirectory(directory.path()).num_parameters(), without);
  auto memory = test::tensors_for(tied);
  memory.add("lm_head.weight", DType::f32, {31, 16});
  write_safetensors(directory / "model.safetensors", memory.tensors);
  EXPECT_THAT(error_of(directory.path()), HasSubstr("'lm_head.weight' has shape [31, 16]"));
}

TEST(ModelDirectory, UntiedHeadMustBePresent) {
  const test::TemporaryDirectory directory;
  test::write_tiny_model(directory.path(),
                         test::tiny_config("Qwen3ForCausalLM", {{"tie_word_embeddings", "true"}}));
  write_file_atomically(directory / "config.json", test::tiny_config("Qwen3ForCausalLM"));
  EXPECT_THAT(error_of(directory.path()), HasSubstr("missing for Qwen3ForCausalLM: lm_head.weight"));
}

TEST(ModelDirectory, OpensTheSharedModels) {
  ROPD_NEEDS_DATA();
  const ModelDirectory tiny(test::data_directory() / "models/qwen3_tiny");
  EXPECT_EQ(tiny.tensors().size(), 36u);
  const ModelDirectory stories(test::data_directory() / "models/stories260K");
  EXPECT_EQ(stories.tensors().size(), 47u);
  EXPECT_EQ(stories.num_parameters(), 260032);
}

}  // namespace
}  // namespace ropd::io
