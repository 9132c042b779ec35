#include "io/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/model_files.h"
#include "support/test_data.h"

namespace ropd::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Changes = std::vector<std::pair<std::string, std::string>>;

ModelConfig config_of(const Changes& changes, const std::string& name = "Qwen3ForCausalLM") {
  return parse_model_config(test::tiny_config(name, changes), "config.json");
}

std::string error_of(const Changes& changes, const std::string& name = "Qwen3ForCausalLM") {
  try {
    config_of(changes, name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ModelConfig, IsReadFromTheOldSpelling) {
  const auto config =
      config_of({{"rope_theta", "1000000.0"}, {"torch_dtype", "\"bfloat16\""}, {"rope_scaling", "null"}});
  EXPECT_EQ(config.architecture, Architecture::qwen3);
  EXPECT_EQ(config.hidden_size, 16);
  EXPECT_EQ(config.intermediate_size, 24);
  EXPECT_EQ(config.num_layers, 2);
  EXPECT_EQ(config.num_heads, 4);
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocab_size, 32);
  EXPECT_EQ(config.max_position_embeddings, 64);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.rope_theta, 1e6);
  EXPECT_EQ(config.dtype, "bfloat16");
  EXPECT_TRUE(config.has_qk_norm);
  EXPECT_FALSE(config.has_qkv_bias);
  EXPECT_FALSE(config.is_moe());
}

TEST(ModelConfig, IsReadFromTheNewSpelling) {
  const auto config = config_of({{"rope_theta", ""},
                                 {"rope_parameters", R"({"rope_theta": 5e5, "rope_type": "default"})"},
                                 {"torch_dtype", ""},
                                 {"dtype", "\"float16\""},
                                 {"layer_types", R"(["full_attention", "full_attention"])"}});
  EXPECT_EQ(config.rope_theta, 5e5);
  EXPECT_EQ(config.dtype, "float16");
}

// As Qwen3's README tells users to write it, and as Llama 3.1's config.json has it.
TEST(ParseModelConfig, ReadsTheRopeScalingOfPublishedConfigs) {
  const auto yarn =
      config_of({{"rope_scaling",
                  R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})"}})
          .rope_scaling;
  EXPECT_EQ(yarn.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(yarn.factor, 4.0);
  EXPECT_EQ(yarn.original_positions, 32768);
  EXPECT_NEAR(yarn.attention_factor, 1.1386294, 1e-6);  // 0.1 ln 4 + 1
  const auto llama =
      config_of(
          {{"rope_scaling",
            R"({"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
          "rope_type": "llama3"})"}})
          .rope_scaling;
  EXPECT_EQ(llama.kind, RopeScaling::Kind::llama3);
  EXPECT_EQ(llama.original_positions, 8192);
  EXPECT_EQ(llama.attention_factor, 1);
}

TEST(ModelConfig, KnowsTheFamilies) {
  EXPECT_TRUE(config_of({}, "Qwen2ForCausalLM").has_qkv_bias);
  EXPECT_FALSE(config_of({}, "Qwen2ForCausalLM").has_qk_norm);
  EXPECT_FALSE(config_of({}, "LlamaForCausalLM").has_qkv_bias);
  EXPECT_EQ(config_of({{"architectures", ""}, {"model_type", "\"llama\""}}).architecture,
            Architecture::llama);
  EXPECT_THAT(error_of({}, "GemmaForCausalLM"), HasSubstr("architecture 'GemmaForCausalLM' is not known"));
  EXPECT_THAT(error_of({{"model_type", "\"qwen3\""}}, "Qwen3ForSequenceClassification"),
              HasSubstr("not known"));
}

TEST(ModelConfig, DerivesWhatIsLeftOut) {
  const auto config =
      config_of({{"head_dim", ""}, {"num_key_value_heads", ""}, {"rope_theta", ""}, {"rms_norm_eps", ""}});
  EXPECT_EQ(config.head_dim, 4);
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.rope_theta, 10000.0);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
}

TEST(ModelConfig, MixtureLayersFollowStepAndList) {
  const auto all = config_of({}, "Qwen3MoeForCausalLM");
  EXPECT_THAT(all.is_moe_layer, ElementsAre(true, true));
  EXPECT_EQ(all.num_experts, 4);
  EXPECT_EQ(all.num_experts_per_token, 2);
  EXPECT_EQ(config_of({{"num_experts", ""}, {"num_local_experts", "4"}}, "Qwen3MoeForCausalLM").num_experts,
            4)
      << "the spelling of transformers 5";
  EXPECT_EQ(all.moe_intermediate_size, 12);
  EXPECT_FALSE(all.norm_topk_prob);
  const auto some = config_of({{"num_hidden_layers", "6"},
                               {"decoder_sparse_step", "2"},
                               {"mlp_only_layers", "[3]"},
                               {"norm_topk_prob", "true"}},
                              "Qwen3MoeForCausalLM");
  EXPECT_THAT(some.is_moe_layer, ElementsAre(false, true, false, false, false, true));
  EXPECT_TRUE(some.norm_topk_prob);
  EXPECT_THAT(error_of({{"mlp_only_layers", "[2]"}}, "Qwen3MoeForCausalLM"),
              HasSubstr("layer numbers below 2"));
  EXPECT_THAT(error_of({{"num_experts_per_tok", "5"}}, "Qwen3MoeForCausalLM"),
              HasSubstr("an integer in [1, 4]"));
  EXPECT_THAT(error_of({{"num_experts", ""}}, "Qwen3MoeForCausalLM"), HasSubstr("'num_experts' is missing"));
}

TEST(ModelConfig, RefusesHeadsThatDoNotDivide) {
  EXPECT_THAT(error_of({{"num_key_value_heads", "3"}}),
              HasSubstr("num_attention_heads 4 is not a multiple of num_key_value_heads 3"));
  EXPECT_THAT(error_of({{"num_attention_heads", "6"}, {"head_dim", ""}}),
              HasSubstr("hidden_size 16 is not a multiple"));
  EXPECT_THAT(error_of({{"head_dim", "7"}}), HasSubstr("head_dim 7 is odd"));
}

TEST(ModelConfig, RefusesRopeScalingByName) {
  EXPECT_THAT(error_of({{"rope_scaling", R"({"type": "dynamic", "factor": 4.0})"}}),
              HasSubstr("rope_scaling of type 'dynamic'"));
  EXPECT_THAT(error_of({{"rope_parameters", R"({"rope_type": "longrope"})"}}),
              HasSubstr("rope_parameters of type 'longrope'"));
  EXPECT_THAT(error_of({{"rope_scaling", R"({"type": "yarn"})"}}),
              HasSubstr("rope_scaling.factor is missing"));
  EXPECT_THAT(error_of({{"rope_scaling", R"({"type": "linear", "factor": 0.5})"}}),
              HasSubstr("rope_scaling.factor is below 1"));
  EXPECT_THAT(
      error_of({{"rope_scaling",
                 R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4})"}}),
      HasSubstr("low_freq_factor 4 is not below high_freq_factor 4"));
}

TEST(ModelConfig, RefusesWhatTheModelDoesNotCompute) {
  EXPECT_THAT(error_of({{"hidden_act", "\"gelu\""}}), HasSubstr("hidden_act 'gelu'"));
  EXPECT_THAT(error_of({{"use_sliding_window", "true"}}), HasSubstr("use_sliding_window"));
  EXPECT_THAT(error_of({{"attention_bias", "true"}}), HasSubstr("attention_bias"));
  EXPECT_THAT(error_of({{"mlp_bias", "true"}}, "LlamaForCausalLM"), HasSubstr("mlp_bias"));
  EXPECT_THAT(error_of({{"layer_types", R"(["sliding_attention"])"}}), HasSubstr("sliding_attention"));
  EXPECT_THAT(error_of({{"quantization_config", "{}"}}), HasSubstr("quantised"));
  EXPECT_THAT(error_of({{"torch_dtype", "\"float8_e4m3fn\""}}), HasSubstr("dtype 'float8_e4m3fn'"));
}

TEST(ModelConfig, RefusesImpossibleNumbers) {
  EXPECT_THAT(error_of({{"hidden_size", "0"}}), HasSubstr("'hidden_size' is 0, expected an integer in [1,"));
  EXPECT_THAT(error_of({{"hidden_size", ""}}), HasSubstr("config.json: 'hidden_size' is missing"));
  EXPECT_THAT(error_of({{"hidden_size", "\"x\""}}), HasSubstr("expected an integer"));
  EXPECT_THAT(error_of({{"vocab_size", "18446744073709551615"}}), HasSubstr("expected an integer"));
  EXPECT_THAT(error_of({{"num_hidden_layers", "100000"}}), HasSubstr("expected an integer in [1, 1024]"));
  EXPECT_THAT(error_of({{"rms_norm_eps", "-1"}}), HasSubstr("a number > 0"));
  EXPECT_THAT(error_of({{"tie_word_embeddings", "1"}}), HasSubstr("true or false"));
  EXPECT_THAT(error_of({{"num_attention_heads", "1073741824"}, {"num_key_value_heads", "2"}}),
              HasSubstr("too large"));
}

GenerationConfig generation_of(std::string_view generation, std::string_view config) {
  return parse_generation_config(generation, "generation_config.json", config, "config.json");
}

TEST(GenerationConfig, TakesOneOrSeveralEosIds) {
  EXPECT_THAT(generation_of(R"({"eos_token_id": 7})", "{}").eos_ids, ElementsAre(7));
  EXPECT_THAT(
      generation_of(R"({"eos_token_id": [7, 3], "pad_token_id": 3})", R"({"eos_token_id": 9})").eos_ids,
      ElementsAre(7, 3));
}

TEST(GenerationConfig, FallsBackToTheModelConfig) {
  const auto generation = generation_of("", R"({"eos_token_id": 9, "bos_token_id": 1, "pad_token_id": -1})");
  EXPECT_THAT(generation.eos_ids, ElementsAre(9));
  EXPECT_EQ(generation.bos_id, 1);
  EXPECT_EQ(generation.pad_id, -1);
  EXPECT_THAT(generation_of(R"({"eos_token_id": null})", R"({"eos_token_id": 9})").eos_ids, ElementsAre(9));
  EXPECT_TRUE(generation_of("", "{}").eos_ids.empty());
}

TEST(GenerationConfig, RefusesIdsThatAreNone) {
  for (const char* text :
       {R"({"eos_token_id": -2})", R"({"eos_token_id": "x"})", R"({"eos_token_id": [1.5]})",
        R"({"eos_token_id": 4294967296})", R"({"bos_token_id": {}})"}) {
    EXPECT_THROW(generation_of(text, "{}"), Error) << text;
  }
}

TEST(WithDtype, ChangesOnlyWhatDiffers) {
  const auto config = test::tiny_config("Qwen3ForCausalLM");
  EXPECT_EQ(with_dtype(config, DType::f32), config);
  const auto changed = with_dtype(config, DType::bf16);
  EXPECT_EQ(parse_model_config(changed, "c").dtype, "bfloat16");
  EXPECT_EQ(with_dtype(changed, DType::bf16), changed);
  EXPECT_THAT(with_dtype(R"({"dtype": "float32", "z": 1, "a": 2})", DType::f16),
              "{\n  \"dtype\": \"float16\",\n  \"z\": 1,\n  \"a\": 2\n}\n");
}

TEST(ModelConfig, ReadsTheSharedModels) {
  ROPD_NEEDS_DATA();
  const auto tiny =
      parse_model_config(read_file(test::data_directory() / "models/qwen3_tiny/config.json"), "c");
  EXPECT_EQ(tiny.architecture, Architecture::qwen3);
  EXPECT_EQ(tiny.head_dim, 32);
  const auto stories =
      parse_model_config(read_file(test::data_directory() / "models/stories260K/config.json"), "c");
  EXPECT_EQ(stories.architecture, Architecture::llama);
  EXPECT_TRUE(stories.tie_word_embeddings);
  EXPECT_EQ(stories.rms_norm_eps, 1e-5);
}

}  // namespace
}  // namespace ropd::io
