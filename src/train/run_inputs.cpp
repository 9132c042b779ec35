#include "train/run_inputs.h"

#include <filesystem>

#include "base/error.h"
#include "eval/suite.h"
#include "io/checkpoint.h"
#include "io/model_path.h"
#include "io/rollout_file.h"
#include "train/run_evaluation.h"
#include "train/run_state.h"

namespace ropd::train {
namespace {

namespace fs = std::filesystem;

void check_banks(const TrainConfig& config, const ModelPair& models) {
  for (const StageConfig& stage : config.curriculum.stages) {
    if (!stage.path) continue;
    const size_t rows = io::read_rollouts(*stage.path, {.vocab_size = models.student->config().vocab_size,
                                                        .eos_ids = models.eos_ids})
                            .size();
    const uint64_t taken = config.train.responses_per_iteration / std::max<size_t>(stage.of.size(), 1);
    if (rows < taken)
      fail(*stage.path, ": holds ", rows, " rollouts, an iteration takes ", taken,
           "; sample a larger bank or lower train.responses_per_iteration");
  }
}

void check_continuation(const Path& checkpoint) {
  io::verify_checkpoint(checkpoint);
  if (read_run_state(checkpoint).minibatches != 0)
    fail(checkpoint.string(),
         ": taken in the middle of an iteration; continue from a checkpoint between iterations");
}

}  // namespace

RunInputs load_inputs(const TrainConfig& config) {
  if (config.continue_from) check_continuation(*config.continue_from);
  RunInputs inputs{.models = load_models(config), .queries = {}};
  if (!config.data.queries.empty() && inputs.models.student_renderer)
    inputs.queries = load_queries(config, *inputs.models.student_renderer);
  check_banks(config, inputs.models);
  if (config.eval.suite) check_evaluation(config, inputs.models);
  return inputs;
}

InputFiles input_files(const TrainConfig& config) {
  InputFiles files;
  for (const auto& [role, directory] : {std::pair{"student", config.student}, {"teacher", config.teacher}})
    if (fs::is_directory(directory)) files[role] = io::model_files(directory);
  if (config.adapter && config.adapter->path)
    files["adapter"] = io::own_model_files(io::find_model(*config.adapter->path));
  const auto add = [&](const std::string& role, const Path& path) {
    if (fs::is_regular_file(path)) files[role] = {{"", path}};
  };
  add("queries", config.data.queries);
  for (size_t i = 0; i < config.curriculum.stages.size(); ++i)
    if (const auto& path = config.curriculum.stages[i].path)
      add("bank of stage " + std::to_string(i + 1), *path);
  // The manifest vouches for the rest of a checkpoint.
  if (config.continue_from) add("continue_from", Path(*config.continue_from) / "MANIFEST.json");
  if (config.eval.suite && !eval::built_in_suite(*config.eval.suite)) add("eval.suite", *config.eval.suite);
  return files;
}

TrainConfig with_paths_from(TrainConfig config, const Path& directory) {
  std::error_code error;
  if (directory.empty() || fs::equivalent(directory, fs::current_path(), error)) return config;
  const auto move = [&](std::string& path) {
    if (!path.empty() && Path(path).is_relative() && fs::exists(directory / path))
      path = (directory / path).string();
  };
  move(config.student);
  move(config.teacher);
  if (config.adapter && config.adapter->path) move(*config.adapter->path);
  move(config.data.queries);
  move(config.eval.data);
  if (config.continue_from) move(*config.continue_from);
  if (config.eval.suite && !eval::built_in_suite(*config.eval.suite)) move(*config.eval.suite);
  for (StageConfig& stage : config.curriculum.stages)
    if (stage.path) move(*stage.path);
  return config;
}

}  // namespace ropd::train
