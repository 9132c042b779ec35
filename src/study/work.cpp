#include "study/work.h"

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "diagnostics/prefixes.h"
#include "eval/evaluate.h"
#include "eval/responses.h"
#include "io/checkpoint.h"
#include "io/durable_folder.h"
#include "io/model_directory.h"
#include "io/run_directory.h"
#include "rollout/bank.h"
#include "rollout/fingerprint.h"
#include "rollout/local_generator.h"
#include "rollout/streams.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "train/branch.h"
#include "train/model_pair.h"
#include "train/queries.h"
#include "train/session.h"

namespace ropd::study {
namespace {

constexpr double kGigabyte = 1e9;

// The stages that lead through these sources.
std::vector<train::StageConfig> stages_through(const std::vector<Source>& sources,
                                               const train::TrainConfig& config) {
  std::vector<train::StageConfig> stages;
  const auto of_run = train::make_stages(config);
  const Source* last = nullptr;
  for (const Source& source : sources) {
    if (last && *last == source) {
      ++*stages.back().iterations;
      continue;
    }
    size_t same = 0;
    while (of_run[same].source != source) ++same;
    train::StageConfig stage = config.curriculum.stages[same];
    stage.until.reset();
    stage.iterations = 1;
    stages.push_back(stage);
    last = &source;
  }
  return stages;
}

// The newest state on the way to a node that the folder has a checkpoint of.
std::optional<FoundState> nearest_state(const Workshop& workshop, const Node& node) {
  const auto& states = workshop.plan.runs[node.run].states;
  for (uint64_t k = node.iteration; k-- > 1;)
    if (auto found = workshop.store.find_state(states[k])) return found;
  return std::nullopt;
}

void copy_bank(const Path& bank, const Path& run) {
  io::make_durable_folder(run / "banks");
  for (const char* ending : {".jsonl", ".meta.json"}) {
    const Path to = (run / "banks" / "initial").string() + ending;
    if (std::filesystem::exists(to)) continue;
    const Path from = Path(bank).replace_extension(ending), temporary = to.string() + ".copying";
    std::filesystem::copy_file(from, temporary, std::filesystem::copy_options::overwrite_existing);
    sync_file(temporary);
    std::filesystem::rename(temporary, to);
    sync_directory(to.parent_path());
  }
}

bool make_training(const Workshop& workshop, const Node& node) {
  const Run& run = workshop.runs[node.run];
  const train::TrainConfig config = training_config(workshop, node);
  const std::string command = "ropd study " + workshop.file.path.string();
  if (!std::filesystem::exists(Path(config.output) / "config.yaml")) {
    if (const auto found = nearest_state(workshop, node))
      train::branch_run(found->run, io::verify_checkpoint(found->checkpoint), config);
    else
      (void)io::RunDirectory::create(config.output, config_to_yaml(config, true),
                                     io::describe_environment(command));
  }
  for (const std::string& need : node.needs)
    if (const Node* bank = workshop.plan.graph.find(need); bank && bank->kind == NodeKind::bank)
      copy_bank(workshop.store.bank(need), config.output);
  if (train::resume_run(config.output, command) != train::RunOutcome::done) return false;
  const auto& states = workshop.plan.runs[node.run].states;
  uint64_t first_step = 0;
  if (run.from) {
    const auto& from = *workshop.file.config.methods[run.method].from;
    const auto parent = workshop.store.find_state(workshop.plan.runs[*run.from].states[from.iteration]);
    first_step = io::verify_checkpoint(parent->checkpoint);
  }
  std::vector<uint64_t> steps;
  for (uint64_t k = 0; k <= node.iteration; ++k)
    steps.push_back(first_step + k * train::steps_per_iteration(config));
  workshop.store.add_run(
      node.id, {states.begin(), states.begin() + static_cast<std::ptrdiff_t>(node.iteration) + 1}, steps);
  return true;
}

Path model_of(const Workshop& workshop, const std::optional<std::string>& state, size_t run) {
  if (!state) return workshop.runs[run].config.student;
  const auto found = workshop.store.find_state(*state);
  if (!found) fail("study: state ", *state, " is gone from ", workshop.store.root().string());
  return found->checkpoint / "model";
}

rollout::EngineConfig engine_config(const train::TrainConfig& config, const io::ModelDirectory& directory) {
  rollout::EngineConfig engine;
  engine.max_response_tokens = static_cast<int64_t>(config.rollout.max_response_tokens);
  engine.eos_ids = directory.generation().eos_ids;
  engine.sampling.temperature = config.rollout.temperature;
  engine.sampling.top_p = config.rollout.top_p;
  if (config.rollout.memory_gb.value)
    engine.memory_bytes = static_cast<uint64_t>(*config.rollout.memory_gb.value * kGigabyte);
  engine.with_logprobs = true;
  return engine;
}

// Responses to the training prompts of a run by some model.
bool sample_queries(const Workshop& workshop, const Node& node, const Path& model, uint64_t responses,
                    const RandomStream& stream, const Path& path) {
  train::TrainConfig config = workshop.runs[node.run].config;
  config.continue_from.reset();
  const auto models = train::load_models(config);
  if (!models.student_renderer) fail(config.student, ": sampling needs a tokenizer with a chat template");
  const auto queries = train::load_queries(config, *models.student_renderer);
  const auto directory = std::make_shared<const io::ModelDirectory>(model);
  const auto weights = model::map_weights(directory);
  rollout::LocalGenerator engine(weights, config.rollout.precision, engine_config(config, *directory));
  const uint64_t count = responses > 0 ? responses : config.curriculum.bank.responses;
  rollout::BankOptions options;
  options.stage = node.label;
  options.decode = [&](std::span<const Token> ids) {
    return models.student_renderer->tokenizer().decode(ids);
  };
  io::make_durable_folder(path.parent_path());
  return rollout::make_bank(
             engine, train::take_requests(queries, 0, count, stream, config.data.grouped), path,
             {.model = model.string(), .fingerprint = rollout::weights_fingerprint(weights)}, options)
      .is_finished;
}

bool make_bank(const Workshop& workshop, const Node& node) {
  const train::TrainConfig& config = workshop.runs[node.run].config;
  const uint64_t responses = config.curriculum.bank.responses;
  return sample_queries(workshop, node, config.student, responses,
                        rollout::bank_stream(config.seed, "initial bank", responses),
                        workshop.store.bank(node.id));
}

bool make_prefixes(const Workshop& workshop, const Node& node) {
  const DiagnosisConfig& diagnosis = workshop.file.config.diagnoses[node.item];
  train::TrainConfig config = workshop.runs[node.run].config;
  config.continue_from.reset();
  const auto models = train::load_models(config);
  const uint64_t queries = train::load_queries(config, *models.student_renderer).queries.size();
  return sample_queries(workshop, node, model_of(workshop, node.state, node.run), queries * diagnosis.samples,
                        rollout::diagnostics_stream(diagnosis.seed, diagnosis.sources[node.source].name),
                        workshop.store.prefixes(node.id));
}

bool make_evaluation(const Workshop& workshop, const Node& node) {
  const EvaluationConfig& evaluation = workshop.file.config.evaluations[node.item];
  const Path model = node.is_teacher ? Path(workshop.runs[node.run].config.teacher)
                                     : model_of(workshop, node.state, node.run);
  const Path folder = workshop.store.evaluation(node.id);
  const auto suite = eval::load_suite(evaluation.suite, evaluation.data);
  const auto tokenizer = text::Tokenizer::load(model);
  const auto directory = std::make_shared<const io::ModelDirectory>(model);
  const auto weights = model::map_weights(directory);
  rollout::EngineConfig config;
  config.max_response_tokens = static_cast<int64_t>(evaluation.max_tokens);
  config.eos_ids = directory->generation().eos_ids;
  rollout::LocalGenerator engine(weights, evaluation.precision, config);
  const auto generated =
      eval::generate_responses(engine, suite, tokenizer, text::ChatTemplate::load(model), folder,
                               {node.label, rollout::weights_fingerprint(weights), evaluation.seed});
  if (!generated.is_finished) return false;
  eval::GradingConfig scoring;
  for (const uint64_t budget : evaluation.budgets) scoring.budgets.push_back(static_cast<uint32_t>(budget));
  if (scoring.budgets.empty()) scoring.budgets.push_back(static_cast<uint32_t>(evaluation.max_tokens));
  const eval::ResponseFile responses(folder / "responses.jsonl", suite);
  eval::write_evaluation(folder, eval::grade_responses(suite, responses, tokenizer, scoring),
                         eval::read_generation_record(folder));
  return true;
}

bool make_diagnosis(const Workshop& workshop, const Node& node) {
  const DiagnosisConfig& diagnosis = workshop.file.config.diagnoses[node.item];
  const auto load = [&](const Path& model) {
    return model::map_weights(std::make_shared<const io::ModelDirectory>(model));
  };
  const auto student = load(model_of(workshop, node.state, node.run));
  const auto teacher = load(workshop.runs[node.run].config.teacher);
  const auto prefixes = diagnostics::choose_positions(
      io::read_rollouts(workshop.store.prefixes(node.prefixes)), diagnosis.positions, diagnosis.seed);
  const double kl = diagnostics::mean_over_responses(diagnostics::position_kl(student, teacher, prefixes));
  const auto reference = load(model_of(workshop, node.reference, node.run));
  const auto change =
      diagnostics::likelihood_change(prefixes, diagnostics::prefix_log_likelihood(reference, prefixes),
                                     diagnostics::prefix_log_likelihood(student, prefixes));
  Json cumulative = Json::array();
  for (const auto& [value, share] : change.cumulative) cumulative.push_back({value, share});
  const Json result = {{"kl", kl}, {"less_likely", change.less_likely}, {"cumulative", cumulative}};
  const Path path = workshop.store.diagnosis(node.id);
  io::make_durable_folder(path.parent_path());
  write_file_atomically(path, result.dump() + "\n");
  return true;
}

}  // namespace

train::TrainConfig training_config(const Workshop& workshop, const Node& node) {
  const Run& run = workshop.runs[node.run];
  const RunProgress& progress = workshop.plan.runs[node.run];
  train::TrainConfig config = run.config;
  config.output = workshop.store.run(node.id).string();
  config.eval = {};                             // evaluations are nodes of their own
  config.trigger.watch = train::Watch::always;  // what was not observed cannot be compared later
  if (run.from) {
    const auto& from = *workshop.file.config.methods[run.method].from;
    const auto found = workshop.store.find_state(workshop.plan.runs[*run.from].states[from.iteration]);
    if (!found) fail("study: ", run.label, ": the state that it continues is gone");
    config.continue_from = found->checkpoint.string();
  }
  const bool is_end = progress.is_complete && node.iteration == config.train.iterations;
  if (!is_end) {
    std::vector<Source> sources = progress.sources;
    sources.resize(node.iteration);
    config.curriculum.stages = stages_through(sources, config);
    config.train.iterations = node.iteration;
  }
  // Runs that still wait for their trigger may leave this one at any of its iterations.
  bool may_be_left = false;
  for (const RunProgress& other : workshop.plan.runs)
    if (!other.is_complete)
      for (const std::string& state : other.states) may_be_left |= state == node.id;
  if (may_be_left) config.checkpoint.every = 1;
  config.checkpoint.keep = may_be_left ? 0 : 1;
  config.checkpoint.keep_steps.clear();
  return config;
}

bool make_node(const Workshop& workshop, const Node& node) {
  switch (node.kind) {
    case NodeKind::bank:
      return make_bank(workshop, node);
    case NodeKind::training:
      return make_training(workshop, node);
    case NodeKind::evaluation:
      return make_evaluation(workshop, node);
    case NodeKind::prefixes:
      return make_prefixes(workshop, node);
    case NodeKind::diagnosis:
      break;
  }
  return make_diagnosis(workshop, node);
}

}  // namespace ropd::study
