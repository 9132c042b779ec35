#include "app/bench_iteration.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "app/output.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "io/save_model.h"
#include "lab/model_files.h"
#include "lab/world.h"
#include "model/init.h"
#include "train/session.h"

namespace ropd::app {
namespace {

ModelConfig shape(int64_t width, int64_t layers, int64_t heads, int64_t inner) {
  ModelConfig config = lab::student_shape();
  config.hidden_size = width;
  config.num_layers = layers;
  config.num_heads = heads;
  config.num_kv_heads = heads / 2;
  config.head_dim = 32;
  config.intermediate_size = inner;
  return config;
}

// A model that never ends a response: its end token is none.
void write_model(const Path& folder, const ModelConfig& config, uint64_t seed) {
  const Path files = folder.string() + "-files";
  lab::write_lab_model_files(files, config);
  std::string settings[2];
  for (size_t i = 0; const char* name : {"config.json", "generation_config.json"}) {
    Json json = parse_json(read_file(files / name), name);
    json["eos_token_id"] = -1;
    settings[i++] = json.dump(2);
  }
  model::Parameters parameters(config);
  model::initialize(parameters, {.seed = seed});
  std::vector<io::TensorToSave> tensors;
  for (const auto& slot : parameters.slots())
    tensors.push_back(io::tensor_to_save(
        slot.name, slot.shape,
        parameters.values().subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size)),
        DType::f32));
  io::save_model_directory(folder,
                           {.source_directory = files,
                            .config_json = settings[0],
                            .generation_config_json = settings[1],
                            .base_model = "none",
                            .description = "Random weights, for a measurement."},
                           std::move(tensors));
}

// A run's own messages would stand between the rows of the bench.
class Silence {
 public:
  Silence() : before_(log_level()) { set_log_level(LogLevel::quiet); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() { set_log_level(before_); }

 private:
  const LogLevel before_;
};

Path make_folder() {
  std::error_code error;
  const Path parent = std::filesystem::temp_directory_path(error);
  if (error) fail("bench: no folder for temporary files: ", error.message(), " (TMPDIR?)");
  const Path folder = parent / ("ropd-bench-" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder, error);  // left by a killed process that had the same id
  std::filesystem::create_directories(folder, error);
  if (error) fail(folder.string(), ": cannot create the folder: ", error.message(), " (TMPDIR?)");
  return folder;
}

}  // namespace

BenchIteration::BenchIteration()
    : student_(shape(128, 3, 4, 320)), teacher_(shape(192, 5, 6, 512)), folder_(make_folder()) {
  write_model(folder_ / "student", student_, 1);
  write_model(folder_ / "teacher", teacher_, 2);
  std::string queries;
  for (int q = 0; q < kQueries; ++q) {
    std::string problem;
    for (int i = 0; i < kPromptTokens; ++i)
      problem += lab::token_text(static_cast<Token>((q * 7 + i * i * 3 + i) % 16));
    queries += Json{{"id", "q" + std::to_string(q)}, {"problem", problem}, {"answer", "1"}}.dump() + "\n";
  }
  write_file_atomically(folder_ / "queries.jsonl", queries);
}

BenchIteration::~BenchIteration() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void BenchIteration::run() const {
  const std::string text = fmt::format(
      "student: {0}/student\n"
      "teacher: {0}/teacher\n"
      "output: {0}/run\n"
      "data: {{queries: {0}/queries.jsonl, select: {{all: true}}, prompt_suffix: \"\"}}\n"
      "rollout: {{max_response_tokens: {1}, precision: f32}}\n"
      "train: {{iterations: 1, responses_per_iteration: {2}, minibatch: 128, teacher_precision: f32}}\n"
      "curriculum: {{stages: [{{source: current}}]}}\n"
      "trigger: {{watch: always}}\n"
      "alarms: {{student_mass: 0, truncation: 1}}\n",
      folder_.string(), kResponseTokens, kResponses);
  std::filesystem::remove_all(folder_ / "run");
  const Silence silence;
  if (train::start_run(train::parse_train_config(text, "bench"), "ropd bench") != train::RunOutcome::done)
    end_stopped("stopped; nothing is kept");
}

}  // namespace ropd::app
