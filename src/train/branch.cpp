#include "train/branch.h"

#include <filesystem>

#include "base/error.h"
#include "io/checkpoint.h"
#include "io/durable_folder.h"
#include "io/metrics_file.h"
#include "io/rollout_file.h"
#include "io/run_directory.h"
#include "io/temporary_folder.h"
#include "train/plan.h"
#include "train/run_state.h"
#include "train/session.h"

namespace ropd::train {
namespace {

Path find_checkpoint(const Path& directory, uint64_t step) {
  for (const auto& entry : io::list_checkpoints(directory))
    if (entry.step == step) return entry.path;
  fail(directory.string(), ": holds no checkpoint of step ", step, " (checkpoint.keep_steps keeps one)");
}

Path without_trailing_slash(const std::string& path) {
  const Path normal = Path(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

// Everything that must be equal for a shared beginning; the curriculum itself is compared by the sources it
// chose.
std::string shared_settings(TrainConfig config) {
  config.curriculum.stages.clear();
  config.trigger = {};
  config.output.clear();
  config.checkpoint = {};
  config.train.iterations = 1;
  return config_to_yaml(config);
}

}  // namespace

void branch_run(const Path& from, uint64_t step, const TrainConfig& config) {
  if (holds_run(config)) return;
  io::RunDirectory::require_new(config.output);
  const TrainConfig parent = load_run_config(from / "config.yaml");
  if (shared_settings(parent) != shared_settings(config))
    fail(from.string(), ": cannot branch, the runs differ in more than their curriculum");
  const Path checkpoint = find_checkpoint(from / "checkpoints", step);
  io::verify_checkpoint(checkpoint);
  SavedRun saved = read_run_state(checkpoint);
  if (saved.minibatches != 0)
    fail(checkpoint.string(), ": taken in the middle of an iteration; branch between iterations");

  auto curriculum = make_curriculum(config, steps_before(config));
  if (curriculum.can_watch() && !std::filesystem::exists(checkpoint / "trigger.safetensors"))
    fail(from.string(),
         ": cannot branch, it did not watch its gradients and the new run needs them (trigger.watch=always)");
  const auto metrics = io::read_metrics(from / "metrics.jsonl");
  std::string lines;
  for (const IterationRecord& recorded : metrics.iterations) {
    if (recorded.step > step) break;
    const std::string expected = source_name(curriculum.source_of(recorded.iteration));
    if (recorded.source != expected)
      fail(from.string(), ": cannot branch at step ", step, ", iteration ", recorded.iteration, " used ",
           recorded.source, " where the new run uses ", expected);
    IterationRecord record = recorded;
    record.stage = curriculum.stage_of(recorded.iteration);
    record.trigger = curriculum.close_iteration(curriculum::evidence_of(recorded));
    for (const StepRecord& s : record.steps) lines += io::metrics_line(s) + "\n";
    lines += io::metrics_line(record) + "\n";
  }
  saved.curriculum = curriculum.state();

  // Built beside its place, so that an interrupted branching leaves nothing that looks like a run, and another one at the
  // same time has a folder of its own. One folder deeper, as a run locks its folder too.
  const Path output = without_trailing_slash(config.output);
  io::make_durable_folder(std::filesystem::absolute(output).parent_path());
  io::TemporaryFolder temporary(output);
  const Path made = temporary.path() / "run";
  {
    const auto directory = io::RunDirectory::create(made, config_to_yaml(config, true),
                                                    io::describe_environment("branch of " + from.string()));
    for (const char* folder : {"banks", "rollouts"})
      if (std::filesystem::exists(from / folder)) io::copy_durable_folder(made / folder, from / folder);
    // What the other run made later came from weights that this one will never have.
    for (uint64_t iteration = curriculum.closed_iterations() + 1; iteration <= parent.train.iterations;
         ++iteration)
      io::remove_bank(directory.rollouts(iteration));
    for (const uint64_t frozen : curriculum::freeze_steps(make_stages(parent)))
      if (frozen > step) io::remove_bank(directory.recent_bank(frozen));
    for (const char* folder : {"banks", "rollouts"})  // a power cut must not bring them back
      if (std::filesystem::exists(made / folder)) sync_directory(made / folder);
    write_file_atomically(directory.metrics(), lines);
    io::CheckpointStore store(directory.checkpoints());
    store.save(step, {.keep = 0, .keep_steps = {}}, [&](const Path& folder) {
      io::copy_durable_folder(folder, checkpoint);
      std::filesystem::remove(folder / "MANIFEST.json");  // of the checkpoint that it was
      write_file_atomically(folder / "state.json", write_run_state(saved));
      write_file_atomically(folder / "metrics.jsonl", lines);
    });
  }
  temporary.move_to(output, made);
}

}  // namespace ropd::train
