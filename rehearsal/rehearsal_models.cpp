// Writes a model directory of a published Qwen3 shape with made weights (made_model.h), bf16, in shards of at
// most 5 GB, with a real tokenizer:
//   rehearsal_models --shape 0.6b --out DIR --tokenizer DIR [--layers N] [--mean-length TOKENS]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "io/hf_config.h"
#include "io/model_directory.h"
#include "io/save_model.h"
#include "made_model.h"

namespace {

using namespace ropd;

struct Options {
  std::string shape = "0.6b", out, tokenizer;
  int64_t layers = 0;  // 0 = as published
  rehearsal::MadeModelSettings settings;
};

Json config_json(const Options& options) {
  struct Shape {
    int64_t width, inner, layers, heads, positions;
    double theta;
  };
  static const std::map<std::string, Shape> kShapes = {{"0.6b", {1024, 3072, 28, 16, 40960, 1e6}},
                                                       {"1.7b", {2048, 6144, 28, 16, 40960, 1e6}},
                                                       {"4b", {2560, 9728, 36, 32, 262144, 5e6}}};
  const Shape& shape = kShapes.at(options.shape);
  return {{"architectures", {"Qwen3ForCausalLM"}},
          {"model_type", "qwen3"},
          {"hidden_size", shape.width},
          {"intermediate_size", shape.inner},
          {"num_hidden_layers", options.layers > 0 ? options.layers : shape.layers},
          {"num_attention_heads", shape.heads},
          {"num_key_value_heads", 8},
          {"head_dim", 128},
          {"vocab_size", 151936},
          {"max_position_embeddings", shape.positions},
          {"rope_theta", shape.theta},
          {"rope_scaling", nullptr},
          {"rms_norm_eps", 1e-6},
          {"hidden_act", "silu"},
          {"attention_bias", false},
          {"tie_word_embeddings", true},
          {"bos_token_id", 151643},
          {"eos_token_id", 151645},
          {"torch_dtype", "bfloat16"}};
}

// As published with Qwen3.
constexpr const char* kGeneration = R"({
  "bos_token_id": 151643,
  "do_sample": true,
  "eos_token_id": [
    151645,
    151643
  ],
  "pad_token_id": 151643,
  "temperature": 0.6,
  "top_k": 20,
  "top_p": 0.95
}
)";

void write_model(const Options& options) {
  const std::string json = config_json(options).dump(2) + "\n";
  const ModelConfig config = io::parse_model_config(json, "config.json");
  const rehearsal::MadeModel model(config, options.settings);
  std::vector<io::TensorToSave> tensors;
  for (const io::ExpectedTensor& tensor : io::expected_tensors(config)) {
    const int64_t columns = tensor.shape.back(), rows = tensor.shape.size() == 1 ? 1 : tensor.shape.front();
    tensors.push_back({{tensor.name, DType::bf16, tensor.shape},
                       [&model, name = tensor.name, rows, columns](const io::TensorToSave::Sink& sink) {
                         const int64_t at_once = std::max<int64_t>(1, (int64_t{1} << 20) / columns);
                         std::vector<Bf16> values;
                         for (int64_t row = 0; row < rows; row += at_once) {
                           values.resize(static_cast<size_t>(std::min(at_once, rows - row) * columns));
                           model.fill(values, name, columns, row);
                           sink(std::as_bytes(std::span(values)));
                         }
                       }});
  }
  io::save_model_directory(options.out,
                           {.source_directory = options.tokenizer,
                            .config_json = json,
                            .generation_config_json = kGeneration,
                            .base_model = "",
                            .description = "Made weights of the shape of Qwen3-" + options.shape +
                                           ", for a rehearsal. They know nothing."},
                           std::move(tensors));
  const auto& expected = model.expectation();
  std::printf("%s: bigram model of %.2f nats, %.1f %% of the mass in 16 tokens, end at log-frequency %.2f\n",
              options.out.c_str(), expected.entropy, 100 * expected.top16_mass, expected.end_log_frequency);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes a model of a published shape with made weights.");
  Options options;
  app.add_option("--shape", options.shape)->check(CLI::IsMember({"0.6b", "1.7b", "4b"}));
  app.add_option("--out", options.out, "model directory to make")->required();
  app.add_option("--tokenizer", options.tokenizer, "folder whose tokenizer is copied")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--layers", options.layers, "fewer than published, for a trial");
  app.add_option("--mean-length", options.settings.mean_length, "tokens of a response, about");
  app.add_option("--sharpness", options.settings.sharpness);
  app.add_option("--noise", options.settings.noise);
  app.add_option("--seed", options.settings.seed);
  CLI11_PARSE(app, argc, argv);
  try {
    write_model(options);
  } catch (const Error& error) {
    std::fprintf(stderr, "rehearsal_models: %s\n", error.what());
    return 1;
  }
  return 0;
}
