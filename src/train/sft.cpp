#include "train/sft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/stop.h"
#include "distill/scoring.h"
#include "io/checkpoint.h"
#include "io/run_directory.h"
#include "optim/clip.h"
#include "train/plan.h"
#include "train/run_checkpoints.h"

namespace ropd::train {
namespace {

constexpr const char* kDescription = "Supervised fine-tuning by ropd sft.";

}  // namespace

void SftConfig::validate(const ConfigPlace& place) const {
  if (steps > 0 && warmup_steps >= steps)
    place.refuse({"warmup_steps", "steps"}, " ", warmup_steps, " must be below steps ", steps);
  if (final_learning_rate > learning_rate)
    place.refuse({"final_learning_rate", "learning_rate"}, " ", final_learning_rate,
                 " is above learning_rate ", learning_rate);
}

double learning_rate_at(const SftConfig& config, uint64_t step, uint64_t total_steps) {
  if (step < config.warmup_steps)
    return config.learning_rate * static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps);
  const double progress = static_cast<double>(step - config.warmup_steps) /
                          static_cast<double>(std::max<uint64_t>(total_steps - config.warmup_steps, 1));
  return config.final_learning_rate + (config.learning_rate - config.final_learning_rate) * 0.5 *
                                          (1 + std::cos(std::numbers::pi * progress));
}

LearnerConfig learner_config(const SftConfig& config) {
  return {
      .adamw = {config.learning_rate, config.betas[0], config.betas[1], config.epsilon, config.weight_decay},
      .precision = config.precision};
}

SftProgress SftTrainer::step(const ExampleStream& stream) {
  const double progress = static_cast<double>(step_) / static_cast<double>(total_steps_);
  std::vector<SftExample> examples;
  SftProgress result;
  double total_weight = 0;
  while (examples.empty() || result.tokens < config_.batch_tokens) {
    examples.push_back(stream(next_example_++, progress));
    result.tokens += examples.back().prompt_ids.size() + examples.back().response_ids.size();
    for (const float weight : examples.back().loss_weights) {
      total_weight += weight;
      result.loss_tokens += weight > 0;
    }
  }
  std::vector<distill::SupervisedMicrobatch> microbatches;
  if (total_weight > 0)
    for (const auto& [begin, end] : model::pack_in_order(
             examples.size(), static_cast<int64_t>(config_.microbatch_tokens), [&](size_t i) {
               return static_cast<int64_t>(examples[i].prompt_ids.size() + examples[i].response_ids.size());
             }))
      microbatches.push_back({std::span(examples).subspan(begin, end - begin), total_weight});
  const MinibatchGradient gradient = learner_.gradient(microbatches);
  if (!gradient.is_finite())
    fail("step ", step_ + 1, ": the gradient is not finite (", gradient.not_finite,
         "); it changed nothing, but the weights may have diverged before: try a lower learning_rate, with "
         "another "
         "output");
  result.loss = gradient.sums.weighted_loss;
  result.grad_norm = gradient.norm;
  result.learning_rate = learning_rate_at(config_, step_, total_steps_);
  learner_.update(result.learning_rate, optim::clip_coefficient(gradient.norm, config_.grad_clip));
  result.step = ++step_;
  return result;
}

void SftTrainer::save(const Path& folder) const {
  (void)learner_.save(folder, kDescription);  // every step is an update
  write_file_atomically(folder / "state.json",
                        Json{{"step", step_}, {"next_example", next_example_}}.dump() + "\n");
}

void SftTrainer::restore(const Path& folder) {
  const Path path = folder / "state.json";
  const Json state = parse_json(read_file(path), path.string());
  const auto count = [&](const char* name) {
    const Json value = state.is_object() ? state.value(name, Json()) : Json();
    if (!value.is_number_unsigned())
      fail(path.string(), ": ", name, " is ", value.dump().substr(0, 40),
           ", expected a count (not the state of a fine-tuning run?)");
    return value.get<uint64_t>();
  };
  step_ = count("step");
  next_example_ = count("next_example");
  learner_.restore(folder, {.updates = step_});
}

namespace {

// The lines of the steps that a checkpoint holds. What lies behind them is written again, with the same numbers:
// it may be anything that a power cut has left.
std::string metrics_until(const Path& path, uint64_t steps) {
  std::string kept;
  std::istringstream lines(read_file(path));
  uint64_t step = 0;
  for (std::string line; step < steps && std::getline(lines, line); kept += line + "\n") {
    const std::string where = path.string() + ":" + std::to_string(++step);
    const Json row = parse_json(line, where);
    if (!row.is_object() || row.value("step", Json()) != step)
      fail(where, ": expected step ", step, " (a line is missing or changed)");
  }
  if (step < steps)
    log_warning(path.string(), ": ends at step ", step, ", the checkpoint has ", steps,
                "; the lines between are lost");
  return kept;
}

// What saved models say of themselves.
io::SaveModelOptions model_files(const SftConfig& config) {
  const Path source = io::base_of(config.model, config.base), generation = source / "generation_config.json";
  return {.source_directory = io::text_directory(config.model, config.base),
          .config_json = read_file(source / "config.json"),
          .generation_config_json = std::filesystem::exists(generation) ? read_file(generation) : "",
          .base_model = config.model,
          .description = ""};
}

std::unique_ptr<FlatLearner> make_learner(const SftConfig& config,
                                          const std::function<model::Parameters()>& start) {
  if (!config.adapter)
    return std::make_unique<FullLearner>(start(), learner_config(config), model_files(config));
  if (auto hint = adapter_rate_hint(config.learning_rate, SftConfig{}.learning_rate)) log_warning(*hint);
  const auto model = open_start(config.model, config.base, config.adapter);
  return std::make_unique<AdapterLearner>(
      AdapterBase(model), first_adapter(*model, *config.adapter, config.seed), learner_config(config));
}

// What a run reads, held in a ledger that nothing was written of yet.
io::InputLedger new_ledger(const SftConfig& config, const std::string& yaml) {
  io::InputLedger ledger(Path(config.output) / "inputs.json", io::InputLedger::New{});
  for (const auto& [role, files] : sft_inputs(config)) ledger.hold(role, files);
  ledger.set_config(yaml);
  ledger.set_directory(std::filesystem::current_path());
  return ledger;
}

// Whether config.output holds this run already. Fails when it holds another one.
bool holds_run(const SftConfig& config, const std::string& yaml) {
  const Path path = Path(config.output) / "config.yaml";
  if (!std::filesystem::exists(path)) return false;
  if (read_file(path) != yaml)
    fail(config.output, ": holds another run (its config.yaml differs); choose another output or remove it");
  return true;
}

// As the run was left.
io::InputLedger open_ledger(const SftConfig& config, const std::string& yaml,
                            const io::RunDirectory& directory) {
  io::InputLedger ledger(directory.inputs());
  if (!ledger.config().empty() && ledger.config() != yaml)
    fail(directory.config().string(), ": edited since the run began; put it back or choose another output");
  for (const auto& [role, files] : sft_inputs(config)) ledger.hold(role, files);
  if (ledger.config().empty()) {  // of an earlier version
    ledger.set_config(yaml);
    ledger.set_directory(std::filesystem::current_path());
  }
  ledger.save();
  return ledger;
}

// The result cannot change unseen either.
void hold_result(io::InputLedger& ledger, const Path& model) {
  ledger.hold(io::kResultRole, io::own_model_files(model));
  ledger.save();
}

}  // namespace

std::map<std::string, std::vector<io::InputFile>> sft_inputs(const SftConfig& config) {
  std::map<std::string, std::vector<io::InputFile>> inputs;
  if (std::filesystem::is_directory(config.model))
    inputs["model"] = io::model_files(config.model, config.base);
  if (std::filesystem::is_regular_file(config.data)) inputs["data"] = {{"", config.data}};
  return inputs;
}

RunOutcome run_sft(const SftConfig& config, const ExampleStream& examples, uint64_t total_steps,
                   const std::function<model::Parameters()>& start, std::string yaml) {
  const Path output = config.output;
  if (yaml.empty()) yaml = config_to_yaml(config, true);
  // A start that is refused leaves nothing: of a new run everything is ready before its folder is made.
  const bool is_new = !holds_run(config, yaml);
  std::optional<io::RunDirectory> directory;
  if (is_new)
    io::RunDirectory::require_new(output);
  else
    directory.emplace(io::RunDirectory::open(output));
  io::InputLedger ledger = is_new ? new_ledger(config, yaml) : open_ledger(config, yaml, *directory);
  if (std::filesystem::exists(output / "model")) {
    hold_result(ledger, output / "model");
    log_info(output.string(), ": done already");
    return RunOutcome::done;
  }
  const auto owned_learner = make_learner(config, start);
  FlatLearner& learner = *owned_learner;
  io::require_free_space(existing_folder(output), 3 * learner.saved_bytes(), "two checkpoints and the model");
  if (is_new)
    directory.emplace(
        io::RunDirectory::create(output, yaml, io::describe_environment("ropd sft"), ledger.text()));
  SftTrainer trainer(config, learner, total_steps);
  io::CheckpointStore store(directory->checkpoints());
  const io::Retention retention{.keep = config.checkpoint_keep, .keep_steps = {}};
  if (const auto newest = io::newest_valid_checkpoint(directory->checkpoints())) {
    bring_back_metrics(directory->metrics(), newest->path);
    trainer.restore(newest->path);
    store.settle(newest->step, retention);
    log_info("going on from ", newest->path.string());
  }
  std::string lines;  // of metrics.jsonl, whatever becomes of the file
  const auto save = [&] {
    ledger.check();
    store.save(trainer.steps_done(), retention, [&](const Path& folder) {
      trainer.save(folder);
      keep_metrics(folder, lines);
    });
  };
  if (std::filesystem::exists(output / "metrics.jsonl")) {
    lines = metrics_until(output / "metrics.jsonl", trainer.steps_done());
    write_file_atomically(output / "metrics.jsonl", lines);
  }
  AppendFile metrics(output / "metrics.jsonl");
  Progress progress("sft " + output.filename().string(), total_steps, "tok");
  uint64_t tokens = 0;
  double smoothed = 0;
  while (trainer.steps_done() < total_steps) {
    const SftProgress s = trainer.step(examples);
    tokens += s.tokens;
    smoothed = smoothed == 0 ? s.loss : 0.95 * smoothed + 0.05 * s.loss;
    const std::string line = Json{
        {"step", s.step},
        {"loss", s.loss},
        {"grad_norm", s.grad_norm},
        {"lr", s.learning_rate},
        {"tokens", s.tokens},
        {"loss_tokens",
         s.loss_tokens}}.dump();
    metrics.append_unsynced(line);
    lines += line + "\n";
    progress.update(s.step, tokens, fmt::format("loss {:.4f}", smoothed));
    const bool is_due = config.checkpoint_every > 0 && s.step % config.checkpoint_every == 0;
    if (is_due || stop_requested()) {
      metrics.sync();
      save();
    }
    if (stop_requested() && s.step < total_steps) {
      progress.finish();
      log_info("stopped after step ", s.step, "; the same command goes on");
      return RunOutcome::stopped;
    }
  }
  metrics.sync();
  ledger.check();
  learner.save_model(output / "model", kDescription);
  hold_result(ledger, output / "model");
  return RunOutcome::done;
}

}  // namespace ropd::train
