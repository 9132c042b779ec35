#include "train/run_parts.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/memory_info.h"
#include "base/version.h"
#include "io/input_ledger.h"
#include "kernels/instruction_sets.h"
#include "rollout/streams.h"
#include "train/run_inputs.h"
#include "train/settings_change.h"

namespace ropd::train {
namespace {

// Whether phases keep their memory when they end (plan.h): not where either model is large.
bool keeps_memory(const ModelPair& models) {
  return models.teacher_weights.execution.keeps_memory &&
         model::choose_execution(models.student->config(), read_memory_info().total_bytes).keeps_memory;
}

// bf16 where all the student's matrices are; f32 loses nothing of anything else. Adapters are small: always f32.
DType stored_type(const TrainConfig& config, const io::ModelDirectory& student) {
  if (config.adapter) return DType::f32;
  if (config.checkpoint.dtype.value) return *config.checkpoint.dtype.value;
  const bool is_bf16 = std::ranges::all_of(student.tensors(), [](const io::StoredTensor& tensor) {
    return tensor.dtype == DType::bf16 || tensor.shape.size() < 2;
  });
  return is_bf16 ? DType::bf16 : DType::f32;
}

std::unique_ptr<FlatLearner> make_learner(const TrainConfig& config, const ModelPair& models,
                                          const RunPartsOptions& options, comm::World& world) {
  LearnerConfig settings{.adamw = adamw_settings(config),
                         .precision = config.train.precision,
                         .activation_bytes = activation_budget(config),
                         .optimizer_folder = options.optimizer_folder,
                         .has_statistics = options.has_statistics,
                         .statistics_folder = options.statistics_folder,
                         .keeps_memory = keeps_memory(models),
                         .stored = stored_type(config, *models.student)};
  if (config.adapter)
    return std::make_unique<AdapterLearner>(AdapterBase(models.student),
                                            first_adapter(*models.student, *config.adapter, config.seed),
                                            std::move(settings), world);
  return std::make_unique<FullLearner>(
      model::Parameters::load(*models.student), std::move(settings),
      io::SaveModelOptions{.source_directory = models.student->text_path(),
                           .config_json = models.student->config_json(),
                           .generation_config_json = models.student->generation_config_json(),
                           .base_model = config.student,
                           .description = ""},
      world);
}

rollout::EngineConfig engine_config(const TrainConfig& config, const ModelPair& models) {
  rollout::EngineConfig engine;
  engine.max_response_tokens = static_cast<int64_t>(config.rollout.max_response_tokens);
  engine.eos_ids = models.eos_ids;
  engine.sampling.temperature = config.rollout.temperature;
  engine.sampling.top_p = config.rollout.top_p;
  if (config.rollout.memory_gb.value)
    engine.memory_bytes = static_cast<uint64_t>(*config.rollout.memory_gb.value * 1e9);
  engine.with_logprobs = true;
  return engine;
}

rollout::EngineConfig evaluation_config(const TrainConfig& config, const ModelPair& models) {
  rollout::EngineConfig engine;
  engine.max_response_tokens = static_cast<int64_t>(config.eval.max_tokens);
  engine.eos_ids = models.eos_ids;
  return engine;
}

distill::LocalScorerConfig scorer_config(const TrainConfig& config, const ModelPair& models,
                                         const distill::StageProgress& progress) {
  distill::LocalScorerConfig result{
      .student = {.top_k = config.objective.top_k,
                  .precision = config.train.precision,
                  .temperature = static_cast<float>(config.rollout.temperature)},
      .teacher = {.top_k = config.objective.top_k,
                  .precision = config.train.teacher_precision,
                  .temperature = static_cast<float>(config.objective.teacher_temperature)},
      .keeps_memory = keeps_memory(models),
      .progress = progress};
  if (!result.keeps_memory) result.release_teacher = [&models] { models.teacher->release_pages(); };
  return result;
}

const Query& query_of(const QuerySet& queries, const std::string& id) {
  for (const TrainingQuery& entry : queries.queries)
    if (entry.query.id == id) return entry.query;
  fail("query ", id,
       " of a bank is not among the run's queries; a teacher with another tokenizer needs its text");
}

comm::Facts facts_of(const ModelPair& models, const std::string& settings) {
  comm::Facts facts = program_facts();
  facts["settings"] = settings;
  facts["student files"] = models.student_content;
  facts["teacher files"] = models.teacher_content;
  return facts;
}

constexpr const char* kSameSettings = "those of the leader";

// Which of a rank's own settings are not the leader's.
std::string compare_settings(const TrainConfig& leaders, const std::optional<TrainConfig>& own) {
  const auto differences = own ? config_differences(leaders, *own) : std::vector<ConfigDifference>();
  return differences.empty() ? kSameSettings : describe(differences);
}

// What another rank holds of a run.
struct Assistant {
  TrainConfig config;
  ModelPair models;
  QuerySet queries;
  std::optional<RunParts> parts;

  Assistant(comm::Crew& crew, ByteReader& call, const std::optional<TrainConfig>& own)
      : config(parse_run_config(call.get<std::string>(), "the leader's settings")) {
    const std::string settings = compare_settings(config, own);
    const bool has_statistics = call.get<bool>();
    const auto leaders_teacher = call.get<std::string>();
    config.continue_from.reset();  // the leader's to read
    models = load_models(config);
    if (models.vocabulary_map && models.student_renderer)
      queries = load_queries(config, *models.student_renderer);
    if (!leaders_teacher.empty()) hold_files(crew.world(), leaders_teacher);
    comm::require_agreement(crew.world(), facts_of(models, settings));
    RunPartsOptions options{.has_statistics = has_statistics};
    const Path scratch = std::filesystem::is_directory(config.output)
                             ? Path(config.output)
                             : std::filesystem::temp_directory_path();
    if (config.trigger.storage == Storage::file) options.statistics_folder = scratch;
    if (config.train.optimizer_storage == Storage::file) options.optimizer_folder = scratch;
    parts.emplace(config, models, queries, crew, options);
  }

  // A rank that does not score never reads the teacher, and takes the leader's word for it.
  void hold_files(const comm::World& world, const std::string& leaders_teacher) {
    io::InputLedger ledger("inputs of a rank", io::InputLedger::New{});  // never written
    const auto files = input_files(config);
    const bool scores = distill::CrewScorer::scores(world.rank(), world.size(), config.train.teacher_ranks);
    ledger.hold("student", files.at("student"));
    if (scores) ledger.hold("teacher", files.at("teacher"));
    models.student_content = ledger.hash_of("student");
    models.teacher_content = scores ? ledger.hash_of("teacher") : leaders_teacher;
  }
};

}  // namespace

RunParts::RunParts(const TrainConfig& config, const ModelPair& models, const QuerySet& queries,
                   comm::Crew& crew, const RunPartsOptions& options)
    : owned_learner(make_learner(config, models, options, crew.world())),
      learner(*owned_learner),
      generator(
          [this, &models](const rollout::Policy& policy) {
            return policy.is_initial ? model::map_weights(models.student) : learner.weights();
          },
          config.rollout.precision, engine_config(config, models), keeps_memory(models),
          [&models] { models.student->release_pages(); }),
      evaluator([this](const rollout::Policy&) { return learner.weights(); }, config.rollout.precision,
                evaluation_config(config, models), /*keeps_memory=*/false),
      teacher(models.teacher, models.teacher_weights, teacher_budget(config)),
      scorer([this] { return learner.weights(); },
             [this] { return teacher.weights(distill::ScoringConfig{}.batch_tokens); },
             models.translation(
                 [&queries](const std::string& id) -> const Query& { return query_of(queries, id); }),
             scorer_config(config, models, crew.is_alone() ? options.progress : distill::StageProgress())),
      crew_generator(generator, crew, early_scoring(config, models, crew)),
      crew_evaluator(evaluator, crew),
      crew_scorer(scorer, crew, options.progress, config.train.teacher_ranks),
      crew_learner(learner, scorer, crew) {}

// A teacher with another tokenizer reads texts, which responses get later.
rollout::Bystanders RunParts::early_scoring(const TrainConfig& config, const ModelPair& models,
                                            comm::Crew& crew) {
  const int ranks = crew.world().size();
  const uint64_t scoring = config.train.teacher_ranks;
  const bool is_possible = !distill::CrewScorer::scores(0, ranks, scoring) && !models.vocabulary_map &&
                           config.train.rescore == Rescore::iteration;
  if (!is_possible) return {};
  return {.is_one = [=](int rank) { return distill::CrewScorer::scores(rank, ranks, scoring); },
          .has_interest =
              [](const rollout::Request& request) { return rollout::is_training_stream(request.stream); },
          .begin = [this] { crew_scorer.begin_early(); },
          .on_done = [this](const Rollout& rollout,
                            const Scores* scores) { crew_scorer.offer_early(rollout, scores); },
          .end = [this] { crew_scorer.end_early(); },
          .serve = [this] { crew_scorer.serve_early(); }};
}

comm::Facts program_facts() {
  const int64_t targets = hwy::SupportedTargets();
  return {{"program", program_version().number + " (" + program_version().revision + ")"},
          {"instruction set", hwy::TargetName(targets & -targets)}};  // the best one
}

void call_to_run(comm::Crew& crew, const TrainConfig& config, const ModelPair& models, bool has_statistics) {
  if (crew.is_alone()) return;
  const size_t duty = crew.enlist([](ByteReader&) {});
  ByteWriter message;
  message.put(config_to_yaml(config, true)).put(has_statistics).put(models.teacher_content);
  const auto call = crew.call(duty, "start of the run", message.bytes());
  comm::require_agreement(crew.world(), facts_of(models, kSameSettings));
}

int assist_run(comm::Crew& crew, const std::optional<TrainConfig>& own) {
  std::unique_ptr<Assistant> assistant;
  crew.enlist([&](ByteReader& call) { assistant = std::make_unique<Assistant>(crew, call, own); });
  return crew.serve();
}

}  // namespace ropd::train
