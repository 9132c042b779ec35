#include "train/local_run.h"

#include <algorithm>

#include "base/error.h"
#include "base/memory_info.h"
#include "io/checkpoint.h"

namespace ropd::train {
namespace {

// Whether phases keep their memory when they end (plan.h): not where either model is large.
bool keeps_memory(const ModelPair& models) {
  return models.teacher_weights.execution.keeps_memory &&
         model::choose_execution(models.student->config(), read_memory_info().total_bytes).keeps_memory;
}

uint64_t first_step(const TrainConfig& config) {
  return config.continue_from ? read_run_state(*config.continue_from).run.step : 0;
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

LearnerConfig learner_config(const TrainConfig& config, const io::RunDirectory& directory,
                             const ModelPair& models) {
  LearnerConfig result{.adamw = adamw_settings(config),
                       .precision = config.train.precision,
                       .activation_bytes = activation_budget(config),
                       .has_statistics = make_curriculum(config, first_step(config)).can_watch(),
                       .keeps_memory = keeps_memory(models),
                       .stored = stored_type(config, *models.student)};
  if (config.trigger.storage == Storage::file) result.statistics_folder = directory.path();
  if (config.train.optimizer_storage == Storage::file) result.optimizer_folder = directory.path();
  return result;
}

std::unique_ptr<FlatLearner> make_learner(const TrainConfig& config, const io::RunDirectory& directory,
                                          const ModelPair& models) {
  LearnerConfig settings = learner_config(config, directory, models);
  if (config.adapter)
    return std::make_unique<AdapterLearner>(AdapterBase(models.student),
                                            first_adapter(*models.student, *config.adapter, config.seed),
                                            std::move(settings));
  return std::make_unique<FullLearner>(
      model::Parameters::load(*models.student), std::move(settings),
      io::SaveModelOptions{.source_directory = models.student->text_path(),
                           .config_json = models.student->config_json(),
                           .generation_config_json = models.student->generation_config_json(),
                           .base_model = config.student,
                           .description = ""});
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

RolloutSupply::Decode decode_with(const ModelPair& models) {
  if (!models.student_renderer) return {};
  return [&models](std::span<const Token> ids) { return models.student_renderer->tokenizer().decode(ids); };
}

// Takes weights and optimizer over; statistics of gradients begin anew. A continuation goes on counting: its
// responses are new ones, and C, N and M are those of both runs. Banks are its own.
void continue_from(Learner& learner, RolloutSupply& supply, RunState& start, const Path& checkpoint) {
  io::verify_checkpoint(checkpoint);
  const SavedRun before = read_run_state(checkpoint);
  if (before.minibatches != 0)
    fail(checkpoint.string(),
         ": taken in the middle of an iteration; continue from a checkpoint between iterations");
  learner.restore(checkpoint, {.updates = before.learner.updates});
  supply.restore({.next_request = before.supply.next_request,
                  .consumed = before.supply.consumed,
                  .rounds = before.supply.rounds,
                  .queries = before.supply.queries});
  start.step = before.run.step;
}

}  // namespace

LocalRun::LocalRun(const TrainConfig& config, const io::RunDirectory& directory, const ModelPair& models,
                   const QuerySet& queries, const distill::StageProgress& progress)
    : owned_learner(make_learner(config, directory, models)),
      learner(*owned_learner),
      generator(
          [this, &models](const rollout::Policy& policy) {
            return policy.is_initial ? model::map_weights(models.student) : learner.weights();
          },
          config.rollout.precision, engine_config(config, models), keeps_memory(models),
          [&models] { models.student->release_pages(); }),
      teacher(models.teacher, models.teacher_weights, teacher_budget(config)),
      scorer([this] { return learner.weights(); },
             [this] { return teacher.weights(distill::ScoringConfig{}.batch_tokens); },
             models.translation(
                 [&queries](const std::string& id) -> const Query& { return query_of(queries, id); }),
             scorer_config(config, models, progress)),
      supply(config, directory, queries, generator, decode_with(models)) {
  start.fingerprints["queries"] = queries.queries.empty() ? "none" : queries.fingerprint;
  if (!models.student_content.empty()) start.fingerprints["student files"] = models.student_content;
  if (!models.teacher_content.empty()) start.fingerprints["teacher files"] = models.teacher_content;
  if (config.continue_from) continue_from(learner, supply, start, *config.continue_from);
}

}  // namespace ropd::train
