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
#include "base/shared_time.h"
#include "base/stop.h"
#include "base/terminal_line.h"
#include "io/checkpoint.h"
#include "io/metrics_file.h"
#include "io/progress_file.h"
#include "io/run_directory.h"
#include "io/sample_file.h"
#include "io/tensorboard.h"
#include "train/divergence.h"
#include "train/local_run.h"
#include "train/measurements.h"
#include "train/proposals.h"
#include "train/run_checkpoints.h"
#include "train/run_evaluation.h"
#include "train/samples.h"
#include "train/settings_change.h"

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

// How a session begins: the command and, where settings change, the configuration to keep from now on.
struct SessionStart {
  std::string command_line;
  std::vector<ConfigDifference> changes = {};
  std::string new_config_yaml = {};
};

class Session {
 public:
  Session(const TrainConfig& config, io::RunDirectory directory, RunInputs inputs, io::InputLedger ledger,
          const SessionHooks& hooks, SessionStart start, comm::Crew& crew)
      : config_(config),
        crew_(crew),
        directory_(std::move(directory)),
        hooks_(hooks),
        start_(std::move(start)),
        models_(std::move(inputs.models)),
        queries_(std::move(inputs.queries)),
        ledger_(std::move(ledger)),
        store_(directory_.checkpoints()),
        divergence_(config.alarms.divergence) {
    for (const std::string& note : models_.notes) log_info(note);
    for (const std::string& warning : config_warnings(config_)) log_warning(warning);
  }

  RunOutcome run() {
    io::ProgressFile progress_file(directory_.progress());
    const RunOutcome outcome = train(progress_file);
    progress_file.finish(outcome == RunOutcome::done ? io::RunPhase::finished : io::RunPhase::stopped);
    return outcome;
  }

 private:
  RunOutcome train(io::ProgressFile& progress_file) {
    std::unique_ptr<Progress> progress;
    std::string stage_shown;
    TrainerHooks hooks;
    const Trainer* running = nullptr;
    RunCheckpoints* checkpoints_of_run = nullptr;
    hooks.before_change = [&] { checkpoints_of_run->wait(); };
    hooks.on_step = [&](const StepRecord& step) {
      StepRecord record = step;
      record.unix_time = unix_time();
      metrics_->append(record);
      tensorboard_->write(record);
      if (record.skipped) log_warning("step ", record.step, " skipped: ", record.skip_reason);
      // One iteration may be the whole run (M = 1 of the grid): states asked for inside it are saved there.
      if (is_kept(record.step) && record.minibatch + 1 < steps_per_iteration(config_))
        save_now(*checkpoints_of_run, *running);
      if (hooks_.on_step) hooks_.on_step(record);
    };
    hooks.on_progress = [&](const char* stage, double done, uint64_t total, uint64_t tokens) {
      if (stage_shown != stage) progress = std::make_unique<Progress>(stage_shown = stage, total, "tok");
      progress->update(done, tokens);
      if (done >= static_cast<double>(total)) {
        progress.reset();
        stage_shown.clear();
      }
    };
    if (config_.metrics.samples > 0 && models_.student_renderer)
      hooks.on_scored = [&](uint64_t iteration, std::span<const Rollout> rollouts,
                            std::span<const Scores> scores) {
        io::write_samples(directory_.samples(iteration),
                          make_samples(iteration, rollouts, scores, queries_,
                                       models_.student_renderer->tokenizer(), config_.metrics.samples));
      };
    call_to_run(crew_, config_, models_, LocalRun::has_statistics(config_));
    LocalRun local(config_, directory_, models_, queries_, hooks.on_progress, crew_);
    Trainer trainer(config_, local.seams(), local.start, hooks);
    RunCheckpoints checkpoints(store_, retention(), crew_.is_alone());
    running = &trainer;
    checkpoints_of_run = &checkpoints;
    first_step_ = trainer.step();
    first_consumed_ = trainer.consumed();
    io::require_free_space(directory_.path(), 2 * local.learner.saved_bytes(),
                           "the next checkpoint and the one before it");
    restore(trainer, checkpoints);
    record_start(trainer);
    metrics_.emplace(directory_.metrics());
    tensorboard_.emplace(directory_.tensorboard(), unix_time(), trainer.step());
    log_info("curriculum: ", trainer.curriculum().describe());

    RunProgress run_progress(directory_.path().filename().string(), config_.train.iterations, known_seconds_,
                             [&](const RunStatus& status) { progress_file.write(status); });
    // A session may have ended inside the evaluation behind the iteration that was restored.
    if (trainer.is_between_iterations() && !evaluate_if_due(trainer, local, checkpoints))
      return stop(trainer, checkpoints);
    OneThreadWatch one_thread;
    while (!trainer.is_done()) {
      run_progress.begin_iteration(trainer.iteration());
      auto record = trainer.iterate();
      if (!record) return stop(trainer, checkpoints);
      check_inputs();  // before anything of this iteration is kept
      record->unix_time = unix_time();
      const auto saving = checkpoints.take_seconds();
      record->seconds.checkpoint = saving.waiting;
      record->seconds.checkpoint_writing = saving.writing;
      record->seconds.evaluation = evaluation_seconds_;
      record->seconds.one_thread = one_thread.take_seconds();
      if (!first_length_mean_) first_length_mean_ = record->response_length_mean;
      record->alarms = find_alarms(*record, config_.alarms, first_length_mean_);
      if (auto alarm = divergence_.observe(*record)) record->alarms.push_back(*alarm + good_checkpoint());
      metrics_->append(*record);
      tensorboard_->write(*record);
      run_progress.end_iteration();
      log_info(iteration_line(*record, config_.train.iterations, run_progress.seconds_left()));
      for (const std::string& alarm : record->alarms)
        log_warning("iteration ", record->iteration, ": ", alarm);
      const bool is_due = config_.checkpoint.every > 0 && record->iteration % config_.checkpoint.every == 0;
      if (is_due || trainer.is_done() || is_kept(trainer.step())) save(checkpoints, trainer);
      if (!evaluate_if_due(trainer, local, checkpoints)) return stop(trainer, checkpoints);
      if (stop_requested() && !trainer.is_done()) return stop(trainer, checkpoints);
    }
    checkpoints.wait();
    check_budget(config_, trainer, first_consumed_, first_step_);
    if (divergence_.has_diverged()) log_warning("the run diverged", good_checkpoint());
    return RunOutcome::done;
  }

  const TrainConfig config_;
  comm::Crew& crew_;
  io::RunDirectory directory_;
  const SessionHooks& hooks_;
  const SessionStart start_;
  const ModelPair models_;
  const QuerySet queries_;
  io::InputLedger ledger_;
  io::CheckpointStore store_;
  DivergenceWatch divergence_;
  std::optional<io::MetricsFile> metrics_;
  std::optional<io::TensorBoardWriter> tensorboard_;
  uint64_t first_consumed_ = 0, first_step_ = 0;  // of the run that is continued, if one is
  std::optional<double> known_seconds_;           // of an iteration that an earlier session made
  double evaluation_seconds_ = 0;                 // of the last one, until the next line tells of it
  std::optional<double>
      first_length_mean_;  // of the run's first iteration: what the length alarm compares with

  // Behind the iterations that are due and have no summary yet. False after a stop request.
  bool evaluate_if_due(const Trainer& trainer, LocalRun& local, RunCheckpoints& checkpoints) {
    const uint64_t closed = trainer.iteration() - 1;
    const bool is_due = closed > 0 && is_evaluation_due(config_.eval, closed, config_.train.iterations);
    // What is kept of a student belongs to a state that the run cannot lose any more: going back behind it with
    // other settings would leave results of weights that never were.
    if (is_due) checkpoints.wait();
    const auto begin = std::chrono::steady_clock::now();
    const bool is_finished = !is_due || evaluate_student(config_, directory_, models_, local.crew_evaluator,
                                                         local.learner.weights(), trainer.step());
    evaluation_seconds_ = 0;
    if (is_due)
      evaluation_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return is_finished;
  }

  bool is_kept(uint64_t step) const {
    const auto& steps = config_.checkpoint.keep_steps;
    return std::find(steps.begin(), steps.end(), step) != steps.end();
  }

  io::Retention retention() const { return {config_.checkpoint.keep, config_.checkpoint.keep_steps}; }

  // Beside what comes next.
  void save(RunCheckpoints& checkpoints, const Trainer& trainer) const {
    checkpoints.begin(trainer.step(),
                      [snapshot = trainer.snapshot(), lines = metrics_->text()](const Path& folder) {
                        snapshot(folder);
                        keep_metrics(folder, lines);
                      });
  }

  void save_now(RunCheckpoints& checkpoints, const Trainer& trainer) const {
    save(checkpoints, trainer);
    checkpoints.wait();
  }

  // Banks that the run has made itself are inputs of what follows.
  void hold_own_banks() {
    for (const auto& entry : std::filesystem::directory_iterator(directory_.initial_bank().parent_path())) {
      const std::string name = entry.path().filename().string();
      const bool is_bank = name.ends_with(".jsonl") && !name.ends_with(".partial.jsonl");
      if (!is_bank || ledger_.is_in_use("banks/" + name)) continue;
      ledger_.hold("banks/" + name, {{"", entry.path()}});
      ledger_.save();
    }
  }

  void check_inputs() {
    hold_own_banks();
    ledger_.check();
  }

  // The newest checkpoint from before the run diverged, as the end of a warning.
  std::string good_checkpoint() const {
    std::string path;
    for (const auto& entry : io::list_checkpoints(directory_.checkpoints()))
      if (entry.step <= divergence_.last_good_step()) path = entry.path.string();
    return path.empty()
               ? "; no checkpoint from before that is left, begin again with a lower train.learning_rate"
               : "; the newest checkpoint from before that is " + path +
                     " (continue_from takes it, with a lower train.learning_rate)";
  }

  void restore(Trainer& trainer, RunCheckpoints& checkpoints) {
    const auto newest = io::newest_valid_checkpoint(directory_.checkpoints());
    const uint64_t step = newest ? newest->step : first_step_;
    if (newest) bring_back_metrics(directory_.metrics(), newest->path);
    const uint64_t removed = io::cut_metrics_back(directory_.metrics(), step);
    if (removed > 0)
      log_info("metrics.jsonl: ", removed, " lines behind step ", step, " moved to metrics.discarded.jsonl");
    hold_own_banks();
    if (!newest) return;
    const auto known = std::filesystem::exists(directory_.metrics()) ? io::read_metrics(directory_.metrics())
                                                                     : io::Metrics{};
    if (!known.iterations.empty()) known_seconds_ = known.iterations.back().seconds.total;
    if (const std::string gap = io::find_gap(known, first_step_, step); !gap.empty())
      log_warning(directory_.metrics().string(), ": ", gap, "; reports will miss it");
    for (const IterationRecord& record : known.iterations) (void)divergence_.observe(record);
    if (!known.iterations.empty()) first_length_mean_ = known.iterations.front().response_length_mean;
    trainer.restore(newest->path, known.open_steps);
    store_.settle(newest->step, retention());
    checkpoints.set_last_step(newest->step);
    log_info("going on from ", newest->path.string());
  }

  // From here on the new settings are those of the run. A kill at any point leaves the old or the new ones:
  // resume_run finishes a change whose config.yaml was not written.
  void record_start(const Trainer& trainer) {
    if (!start_.changes.empty()) {
      if (alters_weights(start_.changes)) remove_later_rollouts(trainer);
      ledger_.set_config(start_.new_config_yaml);
      ledger_.save();
      write_file_atomically(directory_.config(), start_.new_config_yaml);
      log_info("changed from here on: ", describe(start_.changes));
    }
    ledger_.save();
    if (!trainer.is_done() || !start_.changes.empty())
      io::append_history(directory_, {start_.command_line, trainer.step(), start_.changes});
  }

  // Sampled by weights that this run will not have any more.
  void remove_later_rollouts(const Trainer& trainer) {
    for (uint64_t k = trainer.iteration() + 1; k <= config_.train.iterations; ++k)
      io::remove_bank(directory_.rollouts(k));
    for (const uint64_t step : trainer.curriculum().freeze_steps()) {
      if (step <= trainer.step()) continue;
      io::remove_bank(directory_.recent_bank(step));
      ledger_.forget("banks/" + directory_.recent_bank(step).filename().string());
    }
  }

  RunOutcome stop(const Trainer& trainer, RunCheckpoints& checkpoints) {
    check_inputs();
    if (checkpoints.last_step() != trainer.step() && trainer.step() > first_step_) save(checkpoints, trainer);
    checkpoints.wait();
    log_info("stopped after step ", trainer.step(), "; go on with: ropd resume ", directory_.path().string());
    return RunOutcome::stopped;
  }
};

using Stamps = std::map<std::string, io::FileStamp>;

Stamps stamps_of(const InputFiles& inputs) {
  Stamps stamps;
  for (const auto& [role, files] : inputs)
    for (const auto& file : files) stamps[role + " " + file.path.string()] = io::stamp_of(file.path);
  return stamps;
}

// Loads the inputs and holds their content in the ledger, which must describe what was loaded.
RunInputs load_and_hold(io::InputLedger& ledger, const TrainConfig& config,
                        const std::function<RunInputs()>& load) {
  const Stamps before = stamps_of(input_files(config));
  RunInputs inputs = load();
  for (const auto& [role, files] : input_files(config)) ledger.hold(role, files);
  if (stamps_of(input_files(config)) != before)
    fail("a file of student, teacher, queries or banks changed while it was read; try again");
  inputs.models.student_content = ledger.hash_of("student");
  inputs.models.teacher_content = ledger.hash_of("teacher");
  return inputs;
}

// config.yaml as the run keeps it. Fails when it was edited.
std::string unchanged_config(const io::RunDirectory& directory, const io::InputLedger& ledger) {
  const std::string text = read_file(directory.config(), 1 << 20);
  if (ledger.config().empty() || text == ledger.config()) return text;  // the former: an older version's run
  if (text == ledger.config_before()) {                                 // a kill inside record_start
    write_file_atomically(directory.config(), ledger.config());
    return ledger.config();
  }
  const auto edited = config_differences(parse_run_config(ledger.config(), directory.inputs().string()),
                                         parse_run_config(text, directory.config().string()));
  const std::string what = edited.empty() ? "its text" : describe(edited);
  fail(directory.config().string(), ": edited since the run began (", what,
       "); put it back, or say it: ropd resume ", directory.path().string(),
       edited.empty() ? "" : " " + edited[0].key + "=" + edited[0].after);
}

}  // namespace

RunInputs check_start(const TrainConfig& config, int ranks) {
  io::RunDirectory::require_new(config.output);
  RunInputs inputs = load_inputs(config);
  // What cannot be, or cannot fit, is refused before a file is written: a plan has the run's own curriculum, behind
  // the steps of a checkpoint that is whole. Time is not asked for, so nothing is measured.
  check_fits(config, {.ranks = ranks});
  return inputs;
}

RunOutcome start_run(const TrainConfig& config, const std::string& command_line, const SessionHooks& hooks,
                     comm::Crew& crew) {
  const std::string yaml = config_to_yaml(config, true);
  io::InputLedger ledger(Path(config.output) / "inputs.json", io::InputLedger::New{});
  RunInputs inputs = load_and_hold(ledger, config, [&] { return check_start(config, crew.world().size()); });
  ledger.set_config(yaml);
  ledger.set_directory(std::filesystem::current_path());
  auto directory =
      io::RunDirectory::create(config.output, yaml, io::describe_environment(command_line), ledger.text());
  return Session(config, std::move(directory), std::move(inputs), std::move(ledger), hooks, {command_line},
                 crew)
      .run();
}

RunOutcome resume_run(const Path& run_directory, const std::string& command_line, const SessionHooks& hooks,
                      const ResumeOptions& options, comm::Crew& crew) {
  auto directory = io::RunDirectory::open(run_directory);
  io::InputLedger ledger(directory.inputs());
  const std::string text = unchanged_config(directory, ledger);
  const TrainConfig before = parse_run_config(text, directory.config().string());
  const TrainConfig after = parse_run_config(text, directory.config().string(), options.overrides);
  SessionStart start{command_line, allowed_changes(before, after)};
  if (!start.changes.empty()) start.new_config_yaml = config_to_yaml(after, true);
  TrainConfig config = with_paths_from(after, ledger.directory());
  config.output = run_directory.string();
  RunInputs inputs = load_and_hold(ledger, config, [&] { return load_inputs(config); });
  if (ledger.config().empty()) {  // of an earlier version: what is there now is what counts from now on
    ledger.set_config(text);
    ledger.set_directory(std::filesystem::current_path());
  }
  if (options.starts_over) give_up_checkpoints(directory);
  return Session(config, std::move(directory), std::move(inputs), std::move(ledger), hooks, std::move(start),
                 crew)
      .run();
}

bool holds_run(const TrainConfig& config) {
  const Path path = Path(config.output) / "config.yaml";
  if (!std::filesystem::exists(path)) return false;
  if (read_file(path, 1 << 20) != config_to_yaml(config, true))
    fail(config.output,
         ": holds another run (its config.yaml differs from this one); choose another output or remove it");
  return true;
}

RunOutcome start_or_resume_run(const TrainConfig& config, const std::string& command_line,
                               const SessionHooks& hooks) {
  return holds_run(config) ? resume_run(config.output, command_line, hooks)
                           : start_run(config, command_line, hooks);
}

}  // namespace ropd::train
