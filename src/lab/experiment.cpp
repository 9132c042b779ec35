#include "lab/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "diagnostics/prefixes.h"
#include "eval/evaluate.h"
#include "eval/responses.h"
#include "eval/summary.h"
#include "io/checkpoint.h"
#include "io/metrics_file.h"
#include "io/model_directory.h"
#include "io/rollout_file.h"
#include "lab/benchmarks.h"
#include "lab/models.h"
#include "rollout/bank.h"
#include "rollout/fingerprint.h"
#include "rollout/local_generator.h"
#include "rollout/streams.h"
#include "stats/metrics.h"
#include "train/branch.h"
#include "train/queries.h"
#include "train/session.h"

namespace ropd::lab {
namespace {

constexpr int64_t kEvaluationTokens = 512, kTrainingTokens = 256;
const std::vector<uint32_t> kBudgets = {64, 128, 256, 384, 512};
constexpr uint32_t kPrefixSamples = 8, kPrefixPositions = 32;
constexpr uint64_t kPrefixSeed = 1;  // of their responses and of their positions

struct Method {
  std::string name;
  Role role;
};

// Sizes that --fast reduces.
struct Scale {
  uint64_t iterations, fixed_switch, control_switch, bank_batches;
  int problems, samples;
};
Scale scale_of(const LabOptions& options) {
  return options.is_fast ? Scale{6, 4, 2, 3, 48, 2} : Scale{15, 10, 5, 5, 128, 4};
}

train::StageConfig stage(SourceKind source, std::optional<uint64_t> iterations = {}) {
  train::StageConfig config;
  config.source = source;
  config.iterations = iterations;
  return config;
}

std::vector<train::StageConfig> stages_of(Role role, const Scale& scale, uint64_t steps_per_iteration) {
  using enum SourceKind;
  switch (role) {
    case Role::current:
      return {stage(current)};
    case Role::initial_only:
      return {stage(initial)};
    case Role::fixed:
      return {stage(current, scale.fixed_switch), stage(initial)};
    case Role::recent: {
      train::StageConfig frozen = stage(recent);
      frozen.step = scale.fixed_switch * steps_per_iteration;
      return {stage(current, scale.fixed_switch), frozen};
    }
    case Role::initial_first:
      return {stage(current, scale.control_switch), stage(initial, scale.iterations - scale.fixed_switch),
              stage(current)};
    default: {
      train::StageConfig watched = stage(current);
      watched.until = train::StageEnd::trigger;
      return {watched, stage(initial)};
    }
  }
}

class Lab {
 public:
  explicit Lab(const LabOptions& options)
      : options_(options), scale_(scale_of(options)), data_(options.output / "data") {}

  bool run(LabResults& results, std::vector<NamedRun>& runs) {
    std::filesystem::create_directories(options_.output);
    if (!prepare_models()) return false;
    write_lab_data(data_, scale_.problems, scale_.samples);
    results.budgets.assign(kBudgets.begin(), kBudgets.end());
    if (!add_model(results, runs, {"theta_0", Role::initial_student}, models_ / "student")) return false;
    if (!add_model(results, runs, {"teacher", Role::teacher}, models_ / "teacher")) return false;
    for (uint64_t seed = 1; seed <= options_.num_seeds; ++seed)
      if (!run_seed(seed, results, runs)) return false;
    return true;
  }

 private:
  const LabOptions options_;
  const Scale scale_;
  const Path data_;
  Path models_;
  std::optional<diagnostics::PrefixSet> prefixes_;
  std::vector<std::vector<double>> initial_likelihood_;

  bool prepare_models() {
    if (!options_.models.empty()) {
      models_ = options_.models;
      return true;
    }
    models_ = options_.output / "models";
    const struct {
      const char* name;
      train::RunOutcome (*make)(const Path&, const ModelRecipe&);
      ModelRecipe recipe;
    } wanted[] = {{"teacher", make_teacher, teacher_recipe()}, {"student", make_student, student_recipe()}};
    for (const auto& model : wanted) {
      if (std::filesystem::exists(models_ / model.name)) continue;
      const Path work = options_.output / "sft" / model.name;
      log_info("--- making the ", model.name, ": supervised fine-tuning, ", model.recipe.steps, " steps (",
               work.string(), ")");
      if (model.make(work, model.recipe) != train::RunOutcome::done) return false;
      std::filesystem::create_directories(models_);
      std::filesystem::rename(work / "sft" / "model", models_ / model.name);
    }
    return true;
  }

  train::TrainConfig config_for(Role role, uint64_t seed, const Path& output) const {
    train::TrainConfig config = lab_train_config(options_, models_, data_, seed);
    config.output = output.string();
    config.train.iterations = scale_.iterations;
    config.curriculum.bank.responses = scale_.bank_batches * config.train.responses_per_iteration;
    const uint64_t steps = train::steps_per_iteration(config);
    config.curriculum.stages = stages_of(role, scale_, steps);
    config.trigger.watch = train::Watch::always;
    // Others branch off the current-policy run at any of its iterations; they themselves are short.
    config.checkpoint.keep = role == Role::current ? 0 : 1;
    config.checkpoint.every = role == Role::current ? 1 : 5;
    config.validate();
    return config;
  }

  bool run_seed(uint64_t seed, LabResults& results, std::vector<NamedRun>& runs) {
    const Path folder = options_.output / ("seed-" + std::to_string(seed));
    const Path current = folder / "current";
    const auto config = config_for(Role::current, seed, current);
    const uint64_t steps = train::steps_per_iteration(config);
    if (!train_run({"current", Role::current}, config)) return false;
    if (!add_run(results, runs, {"current", Role::current}, seed, current, {})) return false;

    // Sampled once: every run of the seed replays the same bank.
    const auto initial_config = config_for(Role::initial_only, seed, folder / "initial");
    if (!train_run({"initial-only", Role::initial_only}, initial_config)) return false;
    share_bank(folder / "initial", current);
    if (!add_run(results, runs, {"initial-only", Role::initial_only}, seed, folder / "initial", {}))
      return false;

    // This run kept sampling; what R-OPD would have done is in the D and V that were recorded all along.
    const auto tau = curriculum::find_tau(*train::make_trigger(config.trigger),
                                          io::read_metrics(current / "metrics.jsonl").iterations);
    const auto branch = [&](Method method, const char* name, uint64_t iteration,
                            std::optional<uint64_t> shown_tau) {
      const auto branched = config_for(method.role, seed, folder / name);
      if (iteration >= scale_.iterations) return add_run(results, runs, method, seed, current, shown_tau);
      train::branch_run(current, iteration * steps, branched);
      if (!train_run(method, branched)) return false;
      return add_run(results, runs, method, seed, folder / name, shown_tau);
    };
    if (!branch({"fixed", Role::fixed}, "fixed", scale_.fixed_switch, scale_.fixed_switch)) return false;
    if (!branch({"R-OPD", Role::ropd}, "ropd", tau.value_or(scale_.iterations), tau)) return false;
    if (options_.has_controls) {
      if (!branch({"recent bank", Role::recent}, "recent", scale_.fixed_switch, {})) return false;
      if (!branch({"initial first", Role::initial_first}, "initial-first", scale_.control_switch, {}))
        return false;
    }
    return true;
  }

  // False after a stop request.
  bool train_run(const Method& method, const train::TrainConfig& config) {
    const Path path = config.output;
    if (std::filesystem::exists(path / "metrics.jsonl")) {
      const auto metrics = io::read_metrics(path / "metrics.jsonl");
      if (!metrics.iterations.empty() && metrics.iterations.back().iteration == config.train.iterations &&
          io::newest_valid_checkpoint(path / "checkpoints"))
        return true;
    }
    log_info("--- ", method.name, " (", path.string(), ")");
    return train::start_or_resume_run(config, "ropd lab") == train::RunOutcome::done;
  }

  static void share_bank(const Path& from, const Path& to) {
    std::filesystem::create_directories(to / "banks");
    for (const char* file : {"initial.jsonl", "initial.meta.json"})
      if (!std::filesystem::exists(to / "banks" / file))
        std::filesystem::copy_file(from / "banks" / file, to / "banks" / file);
  }

  static MethodResult& method_in(LabResults& results, const Method& method) {
    for (MethodResult& known : results.methods)
      if (known.role == method.role) return known;
    results.methods.push_back({.name = method.name, .role = method.role});
    return results.methods.back();
  }

  bool add_model(LabResults& results, std::vector<NamedRun>& runs, const Method& method, const Path& model) {
    const Path folder = options_.output / (method.role == Role::teacher ? "teacher" : "theta_0");
    RunResult result;
    if (!evaluate(model, folder / "eval" / "lab", result)) return false;
    if (method.role == Role::initial_student && !diagnose(model, folder, result)) return false;
    method_in(results, method).runs.push_back(std::move(result));
    runs.push_back({method.name, folder});
    return true;
  }

  bool add_run(LabResults& results, std::vector<NamedRun>& runs, const Method& method, uint64_t seed,
               const Path& path, std::optional<uint64_t> tau) {
    const auto newest = io::newest_valid_checkpoint(path / "checkpoints");
    if (!newest) fail(path.string(), ": holds no checkpoint that verifies");
    RunResult result;
    result.seed = seed;
    result.tau = tau;
    if (!evaluate(newest->path / "model", path / "eval" / "lab", result)) return false;
    if (!diagnose(newest->path / "model", path, result)) return false;
    method_in(results, method).runs.push_back(std::move(result));
    runs.push_back({method.name, path});
    return true;
  }

  // Generates what is missing and scores it at every budget.
  bool evaluate(const Path& model, const Path& folder, RunResult& result) {
    const auto suite = eval::load_suite((data_ / "suite.yaml").string(), data_);
    const auto tokenizer = text::Tokenizer::load(model);
    if (!std::filesystem::exists(folder / "summary.json")) {
      const auto directory = std::make_shared<const io::ModelDirectory>(model);
      const auto weights = model::map_weights(directory);
      rollout::EngineConfig config;
      config.max_response_tokens = kEvaluationTokens;
      config.eos_ids = directory->generation().eos_ids;
      rollout::LocalGenerator engine(weights, model::Precision::f32, config);
      const auto generated =
          eval::generate_responses(engine, suite, tokenizer, text::ChatTemplate::load(model), folder,
                                   {model.string(), rollout::weights_fingerprint(weights), 1});
      if (!generated.is_finished) return false;
    }
    const eval::ResponseFile responses(folder / "responses.jsonl", suite);
    eval::ScoringConfig scoring;
    scoring.budgets = kBudgets;
    const auto scored = eval::score_responses(suite, responses, tokenizer, scoring);
    if (!std::filesystem::exists(folder / "summary.json"))
      eval::write_evaluation(folder, scored, eval::read_generation_record(folder));
    for (size_t b = 0; b < kBudgets.size(); ++b) add_budget(result, scored, b);
    return true;
  }

  // Equal mean over benchmarks, and its standard error from the questions.
  static void add_budget(RunResult& result, const eval::Evaluation& scored, size_t budget) {
    double accuracy = 0, variance = 0, length = 0, at_cap = 0;
    const double benchmarks = static_cast<double>(scored.benchmarks.size());
    for (const auto& benchmark : scored.benchmarks) {
      const auto summary = stats::benchmark_metrics(benchmark.outcomes[budget]);
      accuracy += summary.accuracy / benchmarks;
      length += summary.mean_tokens / benchmarks;
      at_cap += summary.at_cap / benchmarks;
      double squares = 0;
      const double questions = static_cast<double>(benchmark.outcomes[budget].size());
      for (const auto& question : benchmark.outcomes[budget])
        squares += std::pow(stats::question_accuracy(question) - summary.accuracy, 2);
      variance += squares / (questions - 1) / questions / (benchmarks * benchmarks);
    }
    result.accuracy.push_back(accuracy);
    result.standard_error.push_back(std::sqrt(variance));
    result.length = length;
    result.at_cap = at_cap;
  }

  // Responses of theta_0 on the training queries, apart from every bank; made once.
  bool load_prefixes() {
    if (prefixes_) return true;
    const Path path = options_.output / "theta_0" / "prefixes.jsonl";
    const auto directory = std::make_shared<const io::ModelDirectory>(models_ / "student");
    const auto weights = model::map_weights(directory);
    rollout::EngineConfig config;
    config.max_response_tokens = kTrainingTokens;
    config.eos_ids = directory->generation().eos_ids;
    rollout::LocalGenerator engine(weights, model::Precision::f32, config);
    auto train_config = lab_train_config(options_, models_, data_, 1);
    const auto queries = train::load_queries(
        train_config,
        text::PromptRenderer::load(models_ / "student", {"", train_config.data.prompt_suffix, false}));
    const auto requests = train::take_requests(queries, 0, queries.queries.size() * kPrefixSamples,
                                               rollout::diagnostics_stream(kPrefixSeed, "initial"), false);
    if (!rollout::make_bank(
             engine, requests, path,
             {.model = (models_ / "student").string(), .fingerprint = rollout::weights_fingerprint(weights)},
             {.stage = "diagnostic prefixes"})
             .is_finished)
      return false;
    prefixes_ = diagnostics::choose_positions(io::read_rollouts(path), kPrefixPositions, kPrefixSeed);
    initial_likelihood_ = diagnostics::prefix_log_likelihood(weights, *prefixes_);
    return true;
  }

  bool diagnose(const Path& model, const Path& folder, RunResult& result) {
    if (!load_prefixes()) return false;
    const Path path = folder / "diagnostics.json";
    if (!std::filesystem::exists(path)) {
      const auto student = model::map_weights(std::make_shared<const io::ModelDirectory>(model));
      const auto teacher =
          model::map_weights(std::make_shared<const io::ModelDirectory>(models_ / "teacher"));
      const double kl =
          diagnostics::mean_over_responses(diagnostics::position_kl(student, teacher, *prefixes_));
      const auto change = diagnostics::likelihood_change(
          *prefixes_, initial_likelihood_, diagnostics::prefix_log_likelihood(student, *prefixes_));
      Json cumulative = Json::array();
      for (const auto& [value, share] : change.cumulative) cumulative.push_back({value, share});
      write_file_atomically(
          path, Json{{"initial_prefixes",
                      {{"kl", kl}, {"less_likely", change.less_likely}, {"cumulative", cumulative}}}}
                        .dump() +
                    "\n");
    }
    const Json saved = parse_json(read_file(path), path.string());
    result.prefix_kl = saved.at("initial_prefixes").at("kl").get<double>();
    if (folder.filename() != "theta_0")
      result.prefixes_less_likely = saved.at("initial_prefixes").at("less_likely").get<double>();
    return true;
  }
};

}  // namespace

train::TrainConfig lab_train_config(const LabOptions& options, const Path& models, const Path& data,
                                    uint64_t seed) {
  train::TrainConfig config;
  config.student = (models / "student").string();
  config.teacher = (models / "teacher").string();
  config.seed = seed;
  config.data.queries = (data / "queries.jsonl").string();
  config.data.select.all = true;
  config.data.order_seed = seed;
  config.data.grouped = options.grouped;
  config.data.prompt_suffix = "";
  config.data.max_prompt_tokens = 32;
  config.rollout.max_response_tokens = kTrainingTokens;
  config.rollout.precision = kernels::Precision::f32;
  config.train.learning_rate = options.learning_rate;
  config.train.responses_per_iteration = options.responses_per_iteration;
  // Four minibatches whatever the batch: 480 are 128, 128, 128 and 96.
  config.train.minibatch = std::max<uint64_t>(1, options.responses_per_iteration * 128 / 480);
  config.train.teacher_precision = kernels::Precision::f32;
  config.train.microbatch_tokens = 16384;
  config.alarms.length_factor = 0;  // growing responses are the story here, not an accident
  return config;
}

bool run_lab(const LabOptions& options, LabResults& results, std::vector<NamedRun>& runs) {
  return Lab(options).run(results, runs);
}

}  // namespace ropd::lab
