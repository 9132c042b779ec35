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

// The bank files of a stage with the most responses that an iteration takes of each.
std::vector<std::pair<std::string, uint64_t>> bank_files(const curriculum::Stage& stage, uint64_t responses) {
  const Source& source = stage.source;
  if (source.kind == SourceKind::bank) return {{source.path, responses}};
  std::vector<std::pair<std::string, uint64_t>> files;
  if (source.of.empty()) return files;
  const auto first = curriculum::places_of_parts(source.ratio, source.of.size(), responses);
  const auto last = curriculum::places_of_parts(stage.ratio_to.empty() ? source.ratio : stage.ratio_to,
                                                source.of.size(), responses);
  for (size_t p = 0; p < source.of.size(); ++p)
    if (source.of[p].kind == SourceKind::bank)
      files.emplace_back(source.of[p].path, std::max(first[p], last[p]));
  return files;
}

void check_banks(const TrainConfig& config, const ModelPair& models) {
  for (const curriculum::Stage& stage : make_stages(config))
    for (const auto& [path, taken] : bank_files(stage, config.train.responses_per_iteration)) {
      const size_t rows = io::read_rollouts(path, {.vocab_size = models.student->config().vocab_size,
                                                   .eos_ids = models.eos_ids})
                              .size();
      if (rows < taken)
        fail(path, ": holds ", rows, " rollouts, an iteration takes ", taken,
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
  const auto add_model = [&](const char* role, const Path& directory, const Path& base) {
    if (fs::is_directory(directory)) files[role] = io::model_files(directory, base);
  };
  add_model("student", config.student, config.student_base);
  add_model("teacher", config.teacher, config.teacher_base);
  if (config.adapter && config.adapter->path)
    files["adapter"] = io::own_model_files(io::find_model(*config.adapter->path));
  const auto add = [&](const std::string& role, const Path& path) {
    if (fs::is_regular_file(path)) files[role] = {{"", path}};
  };
  add("queries", config.data.queries);
  const auto stages = make_stages(config);
  for (size_t i = 0; i < stages.size(); ++i) {
    const auto banks = bank_files(stages[i], config.train.responses_per_iteration);
    for (size_t b = 0; b < banks.size(); ++b)
      add("bank " + (b > 0 ? std::to_string(b + 1) + " " : "") + "of stage " + std::to_string(i + 1),
          banks[b].first);
  }
  // The manifest vouches for the rest of a checkpoint.
  if (config.continue_from) add("continue_from", Path(*config.continue_from) / "MANIFEST.json");
  if (!config.eval.suite) return files;
  const bool is_built_in = eval::built_in_suite(*config.eval.suite).has_value();
  if (!is_built_in) add("eval.suite", *config.eval.suite);
  // Each a role of its own: with another suite, benchmarks may come and go.
  if (is_built_in || fs::is_regular_file(*config.eval.suite))
    for (const auto& [name, path] : eval::benchmark_files(*config.eval.suite, config.eval.data))
      add("benchmark " + name, path);
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
  move(config.student_base);
  move(config.teacher_base);
  if (config.adapter && config.adapter->path) move(*config.adapter->path);
  move(config.data.queries);
  move(config.eval.data);
  if (config.continue_from) move(*config.continue_from);
  if (config.eval.suite && !eval::built_in_suite(*config.eval.suite)) move(*config.eval.suite);
  visit_bank_paths(config.curriculum, move);
  return config;
}

}  // namespace ropd::train
