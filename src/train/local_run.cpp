#include "train/local_run.h"

#include <algorithm>

#include "base/error.h"
#include "io/checkpoint.h"
#include "train/plan.h"

namespace ropd::train {
namespace {

RunPartsOptions parts_options(const TrainConfig& config, const io::RunDirectory& directory,
                              const distill::StageProgress& progress) {
  RunPartsOptions options{.has_statistics = LocalRun::has_statistics(config), .progress = progress};
  if (config.trigger.storage == Storage::file) options.statistics_folder = directory.path();
  if (config.train.optimizer_storage == Storage::file) options.optimizer_folder = directory.path();
  return options;
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

bool LocalRun::has_statistics(const TrainConfig& config) {
  return make_curriculum(config, steps_before(config)).can_watch();
}

LocalRun::LocalRun(const TrainConfig& config, const io::RunDirectory& directory, const ModelPair& models,
                   const QuerySet& queries, const distill::StageProgress& progress, comm::Crew& crew)
    : RunParts(config, models, queries, crew, parts_options(config, directory, progress)),
      supply(config, directory, queries, crew_generator, decode_with(models)) {
  start.fingerprints["queries"] = queries.queries.empty() ? "none" : queries.fingerprint;
  if (!models.student_content.empty()) start.fingerprints["student files"] = models.student_content;
  if (!models.teacher_content.empty()) start.fingerprints["teacher files"] = models.teacher_content;
  if (config.continue_from) continue_from(crew_learner, supply, start, *config.continue_from);
}

}  // namespace ropd::train
