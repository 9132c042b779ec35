#include "lab/study_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lab/benchmarks.h"

namespace ropd::lab {
namespace {

constexpr uint64_t kEvaluationTokens = 512, kTrainingTokens = 256;

// Sizes that --fast reduces.
struct Scale {
  uint64_t iterations, fixed_switch, control_switch, bank_batches;
  int problems, samples;
};
Scale scale_of(const LabOptions& options) {
  return options.is_fast ? Scale{6, 4, 2, 3, 48, 2} : Scale{15, 10, 5, 5, 128, 4};
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string method_lines(const std::vector<LabMethod>& methods) {
  std::string text = "methods:\n";
  for (const LabMethod& method : methods)
    text += fmt::format("  - {{name: {}, stages: {}}}\n", quoted(method.name), method.stages);
  return text;
}

}  // namespace

std::vector<uint32_t> lab_budgets() { return {64, 128, 256, 384, 512}; }

std::vector<LabMethod> lab_methods(const LabOptions& options) {
  const Scale scale = scale_of(options);
  const uint64_t steps = train::steps_per_iteration(lab_train_config(options));
  std::vector<LabMethod> methods = {
      {"current", Role::current, "[{source: current}]"},
      {"initial-only", Role::initial_only, "[{source: initial}]"},
      {"fixed", Role::fixed,
       fmt::format("[{{source: current, iterations: {}}}, {{source: initial}}]", scale.fixed_switch)},
      {"R-OPD", Role::ropd, "[{source: current, until: trigger}, {source: initial}]"}};
  if (!options.has_controls) return methods;
  methods.push_back({"recent bank", Role::recent,
                     fmt::format("[{{source: current, iterations: {}}}, {{source: recent, step: {}}}]",
                                 scale.fixed_switch, scale.fixed_switch * steps)});
  methods.push_back(
      {"initial first", Role::initial_first,
       fmt::format(
           "[{{source: current, iterations: {}}}, {{source: initial, iterations: {}}}, {{source: current}}]",
           scale.control_switch, scale.iterations - scale.fixed_switch)});
  return methods;
}

train::TrainConfig lab_train_config(const LabOptions& options) {
  const Scale scale = scale_of(options);
  train::TrainConfig config;
  config.student = (options.models / "student").string();
  config.teacher = (options.models / "teacher").string();
  config.output = (options.output / "run").string();
  config.data.queries = (options.output / "data" / "queries.jsonl").string();
  config.data.select.all = true;
  config.data.grouped = options.grouped;
  config.data.prompt_suffix = "";
  config.data.max_prompt_tokens = 32;
  config.rollout.max_response_tokens = kTrainingTokens;
  config.rollout.precision = kernels::Precision::f32;
  config.train.iterations = scale.iterations;
  config.train.learning_rate = options.learning_rate;
  config.train.responses_per_iteration = options.responses_per_iteration;
  // Four minibatches whatever the batch: 480 are 128, 128, 128 and 96.
  config.train.minibatch = std::max<uint64_t>(1, options.responses_per_iteration * 128 / 480);
  config.train.teacher_precision = kernels::Precision::f32;
  config.train.microbatch_tokens = 16384;
  config.curriculum.bank.responses = scale.bank_batches * options.responses_per_iteration;
  config.checkpoint.every = 5;      // iterations take seconds
  config.alarms.length_factor = 0;  // growing responses are the story here, not an accident
  return config;
}

Path write_lab_study(const LabOptions& options) {
  const Scale scale = scale_of(options);
  std::filesystem::create_directories(options.output);
  const Path data = options.output / "data";
  write_lab_data(data, scale.problems, scale.samples);
  write_file_atomically(options.output / "recipe.yaml", config_to_yaml(lab_train_config(options), true));
  const auto methods = lab_methods(options);
  std::string text =
      "# Written by ropd lab; ropd study works on it as well.\nname: lab\nbase: recipe.yaml\noutput: " +
      quoted(options.output.string()) + "\naxes:\n  - name: order\n    repeats: true\n    values:\n";
  for (uint64_t seed = 1; seed <= options.num_seeds; ++seed)
    text += fmt::format("      - {{name: {}, set: [seed={}, data.order_seed={}]}}\n",
                        quoted(std::to_string(seed)), seed, seed);
  text += method_lines(methods);
  std::string budgets;
  for (const uint32_t budget : lab_budgets())
    budgets += (budgets.empty() ? "" : ", ") + std::to_string(budget);
  text += fmt::format(
      "evaluations:\n  - {{name: {}, suite: {}, data: {}, max_tokens: {}, budgets: [{}], precision: f32, "
      "models: "
      "true}}\n",
      kLabEvaluation, quoted((data / "suite.yaml").string()), quoted(data.string()), kEvaluationTokens,
      budgets);
  text += fmt::format(
      "diagnoses:\n  - name: {}\n    sources: [{{name: theta_0}}]\n    students:\n      - {{name: "
      "theta_0}}\n",
      kLabDiagnosis);
  for (const LabMethod& method : methods)
    text += fmt::format("      - {{name: {}, method: {}}}\n", quoted(method.name), quoted(method.name));
  const Path path = options.output / "study.yaml";
  write_file_atomically(path, text);
  return path;
}

}  // namespace ropd::lab
