#include "train/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/run_progress.h"
#include "base/stop.h"
#include "base/terminal_line.h"
#include "io/checkpoint.h"
#include "io/metrics_file.h"
#include "io/progress_file.h"
#include "io/run_directory.h"
#include "io/tensorboard.h"
#include "train/local_run.h"
#include "train/measurements.h"
#include "train/plan.h"
#include "train/run_evaluation.h"

namespace ropd::train {
namespace {

// One line an iteration, for a researcher's eye.
std::string iteration_line(const IterationRecord& r, uint64_t total, std::optional<double> seconds_left) {
  const LinePart parts[] = {
      {fmt::format("iteration {:>2}/{}", r.iteration, total), 0},
      {fmt::format("{:<7}", r.source), 2},
      {fmt::format("loss {:+.4f}", r.loss), 0},
      {fmt::format("grad {:.3f}", r.grad_norm), 4},
      {r.trigger.ratio ? fmt::format("D/V {:.2f}", *r.trigger.ratio) : "", 1},
      {r.trigger.tau ? fmt::format("tau {}", *r.trigger.tau) : "", 1},
      {fmt::format("KL {:.4f}", r.distillation.kl_candidates), 2},
      {fmt::format("length {:.0f}", r.response_length_mean), 3},
      {fmt::format("cut {:.0f}%", 100 * r.truncated), 3},
      {format_count(r.tokens_per_second) + " tok/s", 4},
      {fmt::format("{:.1f} s", r.seconds.total), 5},
      {r.iteration < total && seconds_left ? format_duration(*seconds_left) + " left" : "", 1}};
  return fit_line(parts, terminal_columns());
}

// C and U at the end are what the configuration promised, behind those of a run that is continued.
void check_budget(const TrainConfig& config, const Trainer& trainer, uint64_t first_consumed,
                  uint64_t first_step) {
  const uint64_t consumed = config.train.iterations * config.train.responses_per_iteration;
  const uint64_t steps = config.train.iterations * steps_per_iteration(config);
  if (trainer.consumed() - first_consumed != consumed || trainer.step() - first_step != steps)
    fail("the run consumed C = ", trainer.consumed() - first_consumed,
         " responses in U = ", trainer.step() - first_step, " steps; planned were ", consumed, " and ", steps,
         " (a fault in the program: please report it)");
}

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class Session {
 public:
  Session(const TrainConfig& config, io::RunDirectory directory, const SessionHooks& hooks)
      : config_(config),
        directory_(std::move(directory)),
        hooks_(hooks),
        models_(load_models(config_)),
        // Without a tokenizer every stage reads a bank, and its rollouts hold their prompts.
        queries_(!config_.data.queries.empty() && models_.student_renderer
                     ? load_queries(config_, *models_.student_renderer)
                     : QuerySet{}),
        store_(directory_.checkpoints()) {
    if (config_.eval.suite) check_evaluation(config_, models_);
    for (const std::string& note : models_.notes) log_info(note);
    for (const std::string& warning : config_warnings(config_)) log_warning(warning);
  }

  // resumed_by: the command that goes on with the run; empty in its first session.
  RunOutcome run(const std::string& resumed_by = "") {
    io::ProgressFile progress_file(directory_.progress());
    const RunOutcome outcome = train(progress_file, resumed_by);
    progress_file.finish(outcome == RunOutcome::done ? io::RunPhase::finished : io::RunPhase::stopped);
    return outcome;
  }

 private:
  RunOutcome train(io::ProgressFile& progress_file, const std::string& resumed_by) {
    io::MetricsFile* metrics = nullptr;
    std::unique_ptr<Progress> progress;
    std::string stage_shown;
    TrainerHooks hooks;
    hooks.on_step = [&](const StepRecord& step) {
      StepRecord record = step;
      record.unix_time = unix_time();
      metrics->append(record);
      tensorboard_->write(record);
      if (record.skipped) log_warning("step ", record.step, " skipped: ", record.skip_reason);
      if (hooks_.on_step) hooks_.on_step(record);
    };
    hooks.on_progress = [&](const char* stage, uint64_t done, uint64_t total, uint64_t tokens) {
      if (stage_shown != stage) progress = std::make_unique<Progress>(stage_shown = stage, total, "tok");
      progress->update(done, tokens);
      if (done == total) {
        progress.reset();
        stage_shown.clear();
      }
    };
    LocalRun local(config_, directory_, models_, queries_, hooks.on_progress);
    Trainer trainer(config_, local.parts(), local.start, hooks);
    first_step_ = trainer.step();
    first_consumed_ = trainer.consumed();
    io::require_free_space(directory_.path(), 2 * local.learner.saved_bytes(),
                           "the next checkpoint and the one before it");
    restore(trainer);
    if (!resumed_by.empty() && !trainer.is_done())
      AppendFile(directory_.resumed()).append(io::describe_environment(resumed_by, io::Layout::one_line));
    io::MetricsFile file(directory_.metrics());
    metrics = &file;
    tensorboard_.emplace(directory_.tensorboard(), unix_time(), trainer.step());
    log_info("curriculum: ", trainer.curriculum().describe());

    RunProgress run_progress(directory_.path().filename().string(), config_.train.iterations, known_seconds_,
                             [&](const RunStatus& status) { progress_file.write(status); });
    double checkpoint_seconds = 0;
    // A session may have ended inside the evaluation behind the iteration that was restored.
    if (trainer.is_between_iterations() && !evaluate_if_due(trainer, local.learner)) return stop(trainer);
    while (!trainer.is_done()) {
      run_progress.begin_iteration(trainer.iteration());
      auto record = trainer.iterate();
      if (!record) return stop(trainer);
      record->unix_time = unix_time();
      record->seconds.checkpoint = checkpoint_seconds;
      record->seconds.evaluation = evaluation_seconds_;
      if (!first_length_mean_) first_length_mean_ = record->response_length_mean;
      record->alarms = find_alarms(*record, config_.alarms, first_length_mean_);
      file.append(*record);
      tensorboard_->write(*record);
      run_progress.end_iteration();
      log_info(iteration_line(*record, config_.train.iterations, run_progress.seconds_left()));
      for (const std::string& alarm : record->alarms)
        log_warning("iteration ", record->iteration, ": ", alarm);
      const bool is_due = config_.checkpoint.every > 0 && record->iteration % config_.checkpoint.every == 0;
      const auto before = std::chrono::steady_clock::now();
      if (is_due || trainer.is_done() || is_kept(trainer.step())) save(trainer);
      checkpoint_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
      if (!evaluate_if_due(trainer, local.learner)) return stop(trainer);
      if (stop_requested() && !trainer.is_done()) return stop(trainer);
    }
    check_budget(config_, trainer, first_consumed_, first_step_);
    return RunOutcome::done;
  }

  const TrainConfig config_;
  io::RunDirectory directory_;
  const SessionHooks& hooks_;
  const ModelPair models_;
  const QuerySet queries_;
  io::CheckpointStore store_;
  std::optional<io::TensorBoardWriter> tensorboard_;
  uint64_t first_consumed_ = 0, first_step_ = 0;  // of the run that is continued, if one is
  std::optional<uint64_t> saved_step_;
  std::optional<double> known_seconds_;  // of an iteration that an earlier session made
  double evaluation_seconds_ = 0;        // of the last one, until the next line tells of it
  std::optional<double> first_length_mean_;  // of the run's first iteration: what the length alarm compares with

  // Behind the iterations that are due and have no summary yet. False after a stop request.
  bool evaluate_if_due(const Trainer& trainer, const FullLearner& learner) {
    const auto begin = std::chrono::steady_clock::now();
    const uint64_t closed = trainer.iteration() - 1;
    const bool is_due = closed > 0 && is_evaluation_due(config_.eval, closed, config_.train.iterations);
    const bool is_finished =
        !is_due || evaluate_student(config_, directory_, models_, learner.weights(), trainer.step());
    evaluation_seconds_ = 0;
    if (is_due)
      evaluation_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return is_finished;
  }

  bool is_kept(uint64_t step) const {
    const auto& steps = config_.checkpoint.keep_steps;
    return std::find(steps.begin(), steps.end(), step) != steps.end();
  }

  void save(const Trainer& trainer) {
    store_.save(trainer.step(), {config_.checkpoint.keep, config_.checkpoint.keep_steps},
                [&](const Path& folder) { trainer.save(folder); });
    saved_step_ = trainer.step();
  }

  void restore(Trainer& trainer) {
    const auto newest = io::newest_valid_checkpoint(directory_.checkpoints());
    const uint64_t step = newest ? newest->step : first_step_;
    const uint64_t removed = io::cut_metrics_back(directory_.metrics(), step);
    if (removed > 0)
      log_info("metrics.jsonl: ", removed, " lines behind step ", step, " moved to metrics.discarded.jsonl");
    if (!newest) return;
    const auto known = std::filesystem::exists(directory_.metrics()) ? io::read_metrics(directory_.metrics())
                                                                     : io::Metrics{};
    trainer.restore(newest->path, known.open_steps);
    if (!known.iterations.empty()) known_seconds_ = known.iterations.back().seconds.total;
    if (!known.iterations.empty()) first_length_mean_ = known.iterations.front().response_length_mean;
    saved_step_ = newest->step;
    log_info("going on from ", newest->path.string());
  }

  RunOutcome stop(const Trainer& trainer) {
    if (saved_step_ != trainer.step() && trainer.step() > first_step_) save(trainer);
    log_info("stopped after step ", trainer.step(), "; go on with: ropd resume ", directory_.path().string());
    return RunOutcome::stopped;
  }
};

}  // namespace

RunOutcome start_run(const TrainConfig& config, const std::string& command_line, const SessionHooks& hooks) {
  // What cannot fit is refused before a file is written. Time is not asked for, so nothing is measured.
  if (!config.continue_from) check_plan(make_plan(config, /*flops=*/1e11));
  auto directory = io::RunDirectory::create(config.output, config_to_yaml(config, true),
                                            io::describe_environment(command_line));
  return Session(config, std::move(directory), hooks).run();
}

RunOutcome resume_run(const Path& run_directory, const std::string& command_line, const SessionHooks& hooks) {
  auto directory = io::RunDirectory::open(run_directory);
  TrainConfig config = load_run_config(directory.config());
  config.output = run_directory.string();
  return Session(config, std::move(directory), hooks).run(command_line);
}

RunOutcome start_or_resume_run(const TrainConfig& config, const std::string& command_line,
                               const SessionHooks& hooks) {
  if (!std::filesystem::exists(Path(config.output) / "config.yaml"))
    return start_run(config, command_line, hooks);
  const std::string held = read_file(Path(config.output) / "config.yaml"),
                    wanted = config_to_yaml(config, true);
  if (held != wanted)
    fail(config.output,
         ": holds another run (its config.yaml differs from this one); choose another output or remove it");
  return resume_run(config.output, command_line, hooks);
}

}  // namespace ropd::train
