// What it costs to stream a teacher layer by layer when its files are in the system's cache: scoring by a
// resident and by a streamed model of eight layers of the 0.6B shape, processor time of all threads.
//   stream_bench --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
#include <benchmark/benchmark.h>

#include <filesystem>
#include <memory>

#include "base/rng.h"
#include "distill/scoring.h"
#include "io/model_directory.h"
#include "model/layer_stream.h"

namespace {

using namespace ropd;

// A model directory that is removed at the end.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "ropd-stream-bench") {
    std::filesystem::create_directories(path_);
    const std::string config = R"({"architectures": ["Qwen3ForCausalLM"], "hidden_size": 1024,
 "intermediate_size": 3072, "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 8,
 "head_dim": 128, "vocab_size": 32000, "max_position_embeddings": 4096, "rope_theta": 1000000,
 "rms_norm_eps": 1e-06, "hidden_act": "silu", "tie_word_embeddings": true, "torch_dtype": "bfloat16"})";
    write_file_atomically(path_ / "config.json", config);
    std::vector<io::TensorInfo> tensors;
    for (auto& expected : io::expected_tensors(io::parse_model_config(config, "config.json")))
      tensors.push_back({expected.name, DType::bf16, expected.shape});
    io::SafetensorsWriter writer(path_ / "model.safetensors", tensors);
    for (const io::TensorInfo& tensor : tensors) {
      std::vector<uint16_t> values(static_cast<size_t>(tensor.num_elements()));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = float_to_bf16(0.04f * static_cast<float>((i * 2654435761u >> 16) % 64) / 64 - 0.02f);
      writer.write(std::as_bytes(std::span(values)));
    }
    writer.commit();
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const Path& path() const { return path_; }

 private:
  Path path_;
};

void score(benchmark::State& state, bool is_streamed) {
  static const Folder folder;
  static const auto directory = std::make_shared<const io::ModelDirectory>(folder.path());
  constexpr uint64_t kMemory = uint64_t{64} << 30;  // one pass, reading ahead
  const model::Weights weights =
      is_streamed ? model::stream_weights(directory, kMemory) : model::map_weights(directory);
  std::vector<Rollout> rollouts(static_cast<size_t>(state.range(0)));
  for (size_t i = 0; i < rollouts.size(); ++i) {
    rollouts[i] = {.query_id = std::to_string(i), .prompt_ids = {1, 2, static_cast<Token>(i)}};
    for (Token t = 0; t < 253; ++t) rollouts[i].response_ids.push_back((t * 97) % 32000);
  }
  model::Workspace workspace;
  const distill::ScoringConfig config{.top_k = 16, .precision = kernels::Precision::bf16};
  const auto once = [&] {
    auto scores = distill::score_student(weights, rollouts, config, workspace);
    if (!is_streamed) directory->release_pages();  // as a run does after scoring
    return scores;
  };
  benchmark::DoNotOptimize(once());  // the first pass looks for NaN
  for (auto _ : state) benchmark::DoNotOptimize(once());
  state.SetItemsProcessed(state.iterations() * state.range(0) * 256);
}
BENCHMARK_CAPTURE(score, resident, false)
    ->Arg(4)
    ->Arg(16)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(score, streamed, true)
    ->Arg(4)
    ->Arg(16)
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
