#include "study/work.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/sealed_json.h"
#include "diagnostics/prefixes.h"
#include "diagnostics/probes.h"
#include "eval/evaluate.h"
#include "eval/responses.h"
#include "eval/samples.h"
#include "io/checkpoint.h"
#include "io/durable_folder.h"
#include "io/files_in_use.h"
#include "io/model_directory.h"
#include "io/model_path.h"
#include "io/run_directory.h"
#include "model/bounded_model.h"
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
#include "train/teacher_translation.h"

namespace ropd::study {
namespace {

constexpr double kGigabyte = 1e9;
constexpr uint64_t kManySteps = 32;  // of an iteration that is too long to be lost

// The stages that lead through these sources.
std::vector<train::StageConfig> stages_through(const std::vector<Source>& sources) {
  std::vector<train::StageConfig> stages;
  for (size_t i = 0; i < sources.size(); ++i)
    if (i > 0 && sources[i] == sources[i - 1])
      ++*stages.back().iterations;
    else
      stages.push_back(train::stage_config(sources[i]));
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
    copy_file_atomically(to, Path(bank).replace_extension(ending));
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

// The models that a node is made with. Nothing is kept that was made while one of them was written to.
class OpenedModels {
 public:
  explicit OpenedModels(const train::TrainConfig& config) : config_(config) {}
  // What a run begins with or made; an adapter of the run lies on the run's student.
  std::shared_ptr<const io::ModelDirectory> open(const Path& model) {
    Path base;
    if (io::is_adapter_directory(model)) base = config_.adapter ? config_.student : config_.student_base;
    files_.add(io::model_files(model, base));
    return std::make_shared<const io::ModelDirectory>(model, base);
  }
  std::shared_ptr<const io::ModelDirectory> open_teacher() {
    files_.add(io::model_files(config_.teacher, config_.teacher_base));
    return train::open_teacher(config_);
  }
  void check() const { files_.check(); }

 private:
  const train::TrainConfig& config_;
  io::FilesInUse files_;
};

// Where a run begins.
Path initial_model(const train::TrainConfig& config) {
  return config.adapter && config.adapter->path ? io::find_model(*config.adapter->path)
                                                : Path(config.student);
}

Path model_of(const Workshop& workshop, const std::optional<std::string>& state, size_t run) {
  if (!state) return initial_model(workshop.runs[run].config);
  const auto found = workshop.store.find_state(*state);
  if (!found) fail("study: state ", *state, " is gone from ", workshop.store.root().string());
  return io::find_model(found->checkpoint);  // compared with its manifest: nobody else reads it again
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

// Responses of some model to the prompts of a configuration: so many of each, or `total` over all.
struct Amount {
  uint64_t each = 0, total = 0;
};
bool sample_queries(const Node& node, const train::TrainConfig& config, const Path& model, Amount amount,
                    const RandomStream& stream, const Path& path) {
  const auto models = train::load_models(config);
  if (!models.student_renderer) fail(config.student, ": sampling needs a tokenizer with a chat template");
  const auto queries = train::load_queries(config, *models.student_renderer);
  OpenedModels opened(config);
  const auto directory = opened.open(model);
  const auto weights = model::map_weights(directory);
  rollout::LocalGenerator engine(weights, config.rollout.precision, engine_config(config, *directory));
  const uint64_t count = amount.each > 0 ? amount.each * queries.queries.size() : amount.total;
  rollout::BankOptions options;
  options.stage = node.label;
  options.check = [&] { opened.check(); };
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
  train::TrainConfig config = workshop.runs[node.run].config;
  config.continue_from.reset();  // not there yet; a bank does not depend on it
  const uint64_t responses = config.curriculum.bank.responses;
  return sample_queries(node, config, initial_model(config), {.total = responses},
                        rollout::bank_stream(config.seed, "initial bank", responses),
                        workshop.store.bank(node.id));
}

bool make_prefixes(const Workshop& workshop, const Node& node) {
  const DiagnosisConfig& diagnosis = workshop.file.config.diagnoses[node.item];
  return sample_queries(node, prompts_of(workshop.runs[node.run], diagnosis),
                        model_of(workshop, node.state, node.run), {.each = diagnosis.samples},
                        rollout::diagnostics_stream(diagnosis.seed, diagnosis.sources[node.source].name),
                        workshop.store.prefixes(node.id));
}

// Responses for reading, with both sides of the pair; of a teacher that reads other ids only the model's own.
void write_samples(const Workshop& workshop, const Node& node, const eval::Suite& suite, OpenedModels& models,
                   const io::ModelDirectory& directory, const model::Weights& evaluated) {
  const train::TrainConfig& run = workshop.runs[node.run].config;
  const EvaluationConfig& evaluation = workshop.file.config.evaluations[node.item];
  const auto other_directory = node.is_teacher ? models.open(initial_model(run)) : models.open_teacher();
  const auto other = model::map_weights(other_directory);
  const model::Weights& student = node.is_teacher ? other : evaluated;
  const model::Weights& teacher = node.is_teacher ? evaluated : other;
  const Path own_text = directory.text_path(), other_text = other_directory->text_path();
  const bool is_shared = !train::teacher_vocabulary(node.is_teacher ? other_text : own_text, student.config,
                                                    node.is_teacher ? own_text : other_text, teacher.config);
  const auto score = is_shared ? eval::score_by(student, teacher, evaluation.precision)
                               : eval::score_by(evaluated, std::nullopt, evaluation.precision);
  eval::write_samples(workshop.store.evaluation(node.id), suite, text::Tokenizer::load(own_text),
                      run.metrics.samples, [&](const auto& responses) {
                        auto scores = score(responses);
                        models.check();
                        return scores;
                      });
}

bool make_evaluation(const Workshop& workshop, const Node& node) {
  const EvaluationConfig& evaluation = workshop.file.config.evaluations[node.item];
  const train::TrainConfig& run = workshop.runs[node.run].config;
  const Path model = node.is_teacher ? Path(run.teacher) : model_of(workshop, node.state, node.run);
  const Path folder = workshop.store.evaluation(node.id);
  const auto suite = eval::load_suite(evaluation.suite, evaluation.data);
  OpenedModels models(run);
  const auto directory = node.is_teacher ? models.open_teacher() : models.open(model);
  const auto tokenizer = text::Tokenizer::load(directory->text_path());
  const auto weights = model::map_weights(directory);
  rollout::EngineConfig config;
  config.max_response_tokens = static_cast<int64_t>(evaluation.max_tokens);
  config.eos_ids = directory->generation().eos_ids;
  rollout::LocalGenerator engine(weights, evaluation.precision, config);
  const auto generated = eval::generate_responses(engine, suite, tokenizer,
                                                  text::ChatTemplate::load(directory->text_path()), folder,
                                                  {model.string(), rollout::weights_fingerprint(weights),
                                                   evaluation.seed, evaluation.suite, evaluation.data},
                                                  [&] { models.check(); });
  if (!generated.is_finished) return false;
  write_samples(workshop, node, suite, models, *directory, weights);
  eval::GradingConfig scoring;
  for (const uint64_t budget : evaluation.budgets) scoring.budgets.push_back(static_cast<uint32_t>(budget));
  if (scoring.budgets.empty()) scoring.budgets.push_back(static_cast<uint32_t>(evaluation.max_tokens));
  const eval::ResponseFile responses(folder / "responses.jsonl", suite);
  eval::write_evaluation(folder, eval::grade_responses(suite, responses, tokenizer, scoring),
                         eval::read_generation_record(folder));
  return true;
}

// Of every response the share of its non-empty prefixes that became less likely; null without any.
Json less_likely_by_response(const diagnostics::PrefixSet& prefixes,
                             const std::vector<std::vector<double>>& before,
                             const std::vector<std::vector<double>>& after) {
  Json list = Json::array();
  for (size_t i = 0; i < prefixes.rollouts.size(); ++i) {
    size_t lower = 0, count = 0;
    for (size_t t = 0; t < prefixes.positions[i].size(); ++t) {
      if (prefixes.positions[i][t] == 0) continue;
      ++count;
      lower += after[i][t] < before[i][t];
    }
    list.push_back(count > 0 ? Json(static_cast<double>(lower) / static_cast<double>(count)) : Json(nullptr));
  }
  return list;
}

Json probe(const DiagnosisConfig& diagnosis, const train::TrainConfig& config,
           const io::ModelDirectory& student, const model::Weights& teacher, const std::vector<Rollout>& rollouts) {
  diagnostics::ProbeConfig probes;
  probes.minibatch = diagnosis.probes->minibatch;
  probes.coordinates = diagnosis.probes->coordinates;
  probes.seed = diagnosis.seed;
  probes.scoring.top_k = config.objective.top_k;
  probes.microbatch_tokens = static_cast<int64_t>(config.train.microbatch_tokens);
  const size_t count = std::min<size_t>(diagnosis.probes->trajectories, rollouts.size());
  const auto result = diagnostics::probe_gradients(model::Parameters::load(student), teacher,
                                                   std::span(rollouts).first(count), probes);
  return {{"norms", result.norms}, {"coordinates", result.coordinates}};
}

bool make_diagnosis(const Workshop& workshop, const Node& node) {
  const DiagnosisConfig& diagnosis = workshop.file.config.diagnoses[node.item];
  const train::TrainConfig& config = workshop.runs[node.run].config;
  OpenedModels models(config);
  const auto student_directory = models.open(model_of(workshop, node.state, node.run));
  const auto student = model::map_weights(student_directory);
  const auto directory = models.open_teacher();
  model::BoundedModel bounded(directory, model::map_weights(directory), train::teacher_budget(config));
  const model::Weights teacher = bounded.weights(diagnostics::kBatchTokens);
  if (student.config.vocab_size != teacher.config.vocab_size)
    fail(diagnosis.name, ": the student has a vocabulary of ", student.config.vocab_size,
         " entries, the teacher ", teacher.config.vocab_size, "; a diagnosis needs one vocabulary");
  const auto prefixes = diagnostics::choose_positions(
      io::read_rollouts(workshop.store.prefixes(node.prefixes)), diagnosis.positions, diagnosis.seed);
  const auto kl =
      diagnostics::position_kl(student, teacher, diagnostics::states_at(teacher, prefixes), prefixes);
  const auto before = diagnostics::prefix_log_likelihood(
                 model::map_weights(models.open(model_of(workshop, node.reference, node.run))), prefixes),
             after = diagnostics::prefix_log_likelihood(student, prefixes);
  const auto change = diagnostics::likelihood_change(prefixes, before, after);
  Json cumulative = Json::array();
  for (const auto& [value, share] : change.cumulative) cumulative.push_back({value, share});
  Json result = {{"kl", diagnostics::mean_over_responses(kl)},
                 {"less_likely", change.less_likely},
                 {"cumulative", cumulative},
                 {"position_kl", kl},
                 {"response_less_likely", less_likely_by_response(prefixes, before, after)}};
  if (diagnosis.probes) result["probe"] = probe(diagnosis, config, *student_directory, teacher, prefixes.rollouts);
  models.check();
  const Path path = workshop.store.diagnosis(node.id);
  io::make_durable_folder(path.parent_path());
  write_file_atomically(path, sealed(std::move(result)).dump() + "\n");
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
    config.curriculum.stages = stages_through(sources);
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
  // A run of a single long iteration (M = 1) would otherwise have no state before its end.
  const uint64_t steps = train::steps_per_iteration(config);
  if (config.train.iterations == 1 && steps >= kManySteps && !config.continue_from)
    config.checkpoint.keep_steps = {steps / 2};
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
