#include "train/sft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numbers>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/rng.h"
#include "base/stop.h"
#include "distill/scoring.h"
#include "io/checkpoint.h"
#include "io/model_directory.h"
#include "io/run_directory.h"
#include "io/save_model.h"
#include "kernels/vocab_head.h"
#include "kernels/vocab_rows.h"
#include "model/forward.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "tensor/float_storage.h"
#include "train/state_tensors.h"

namespace ropd::train {

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

struct SftTrainer::Parts {
  const SftConfig config;
  model::Parameters& parameters;
  const uint64_t total_steps;
  const model::Weights weights;
  model::Gradients gradients;
  FloatStorage first_moment, second_moment;
  optim::AdamW optimizer;
  model::TrainingPass pass;
  std::vector<optim::TensorRange> tensors;
  uint64_t step = 0, next_example = 0;

  Parts(const SftConfig& c, model::Parameters& p, uint64_t total)
      : config(c),
        parameters(p),
        total_steps(total),
        weights(p.weights()),
        gradients(p),
        first_moment(p.values().size()),
        second_moment(p.values().size()),
        optimizer(settings(0), first_moment.values(), second_moment.values()),
        pass(weights, c.precision, size_t{2} << 30) {
    for (const auto& slot : p.slots())
      tensors.push_back({slot.name, static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size)});
  }

  optim::AdamWSettings settings(uint64_t at) const {
    return {learning_rate_at(config, at, total_steps), config.betas[0], config.betas[1], config.epsilon,
            config.weight_decay};
  }

  // Adds the gradient of sum_t weight_t / total_weight * loss_t over some examples; returns that sum.
  double accumulate(std::span<const SftExample> examples, double total_weight) {
    std::vector<model::PromptedResponse> responses;
    for (const SftExample& example : examples)
      responses.push_back({example.prompt_ids, example.response_ids});
    const auto [batch, first_rows] = model::pack_responses(responses, model::Prompts::each_its_own);
    std::vector<int64_t> rows;
    std::vector<int32_t> targets;
    std::vector<float> row_weights;
    for (size_t i = 0; i < examples.size(); ++i) {
      const SftExample& example = examples[i];
      for (size_t t = 0; t < example.response_ids.size(); ++t)
        if (example.loss_weights[t] != 0) {
          rows.push_back(first_rows[i] + static_cast<int64_t>(t));
          targets.push_back(example.response_ids[t]);
          row_weights.push_back(static_cast<float>(example.loss_weights[t] / total_weight));
        }
    }
    std::vector<double> losses(rows.size());
    pass.accumulate(gradients, batch, rows,
                    [&](std::span<float> grad_states, std::span<float> grad_head,
                        std::span<const float> states, size_t first) {
                      kernels::vocab_head_grad(
                          grad_states, grad_head, states, weights.head.stored, config.precision,
                          kernels::kVocabScratchBytes, [&](int64_t row, std::span<float> logits) {
                            const size_t r = first + static_cast<size_t>(row);
                            losses[r] = row_weights[r] * static_cast<double>(kernels::cross_entropy_gradient(
                                                             logits, targets[r], row_weights[r]));
                          });
                    });
    double loss = 0;
    for (const double l : losses) loss += l;
    return loss;
  }
};

SftTrainer::SftTrainer(const SftConfig& config, model::Parameters& parameters, uint64_t total_steps)
    : parts_(std::make_unique<Parts>(config, parameters, total_steps)) {}
SftTrainer::~SftTrainer() = default;

uint64_t SftTrainer::steps_done() const { return parts_->step; }

SftProgress SftTrainer::step(const ExampleStream& stream) {
  Parts& p = *parts_;
  const double progress = static_cast<double>(p.step) / static_cast<double>(p.total_steps);
  std::vector<SftExample> examples;
  SftProgress result;
  double total_weight = 0;
  while (examples.empty() || result.tokens < p.config.batch_tokens) {
    examples.push_back(stream(p.next_example++, progress));
    result.tokens += examples.back().prompt_ids.size() + examples.back().response_ids.size();
    for (const float weight : examples.back().loss_weights) {
      total_weight += weight;
      result.loss_tokens += weight > 0;
    }
  }
  p.gradients.clear();
  if (total_weight > 0)
    for (const auto& [begin, end] : distill::pack_in_order(
             examples.size(), static_cast<int64_t>(p.config.microbatch_tokens), [&](size_t i) {
               return static_cast<int64_t>(examples[i].prompt_ids.size() + examples[i].response_ids.size());
             }))
      result.loss += p.accumulate(std::span(examples).subspan(begin, end - begin), total_weight);
  result.grad_norm = optim::global_norm(p.gradients.values());
  if (!std::isfinite(result.grad_norm)) {
    const auto found = optim::find_non_finite(p.gradients.values(), p.tensors);
    fail("step ", p.step + 1, ": the gradient is not finite (",
         found ? optim::describe(*found, p.gradients.values().size()) : "norm",
         "); the newest checkpoint is intact, try a lower learning_rate");
  }
  result.learning_rate = learning_rate_at(p.config, p.step, p.total_steps);
  p.optimizer.set_learning_rate(result.learning_rate);
  p.optimizer.update(p.parameters.values(), p.gradients.values(),
                     optim::clip_coefficient(result.grad_norm, p.config.grad_clip));
  result.step = ++p.step;
  return result;
}

void SftTrainer::save(const Path& folder) const {
  const SavedVector moments[] = {{"exp_avg", parts_->first_moment.values()},
                                 {"exp_avg_sq", parts_->second_moment.values()}};
  save_vectors(folder / "optimizer.safetensors", moments, parts_->tensors);
  write_file_atomically(folder / "state.json",
                        Json{{"step", parts_->step}, {"next_example", parts_->next_example}}.dump() + "\n");
}

void SftTrainer::restore(const Path& folder) {
  const Path path = folder / "state.json";
  const Json state = parse_json(read_file(path), path.string());
  parts_->step = state.at("step").get<uint64_t>();
  parts_->next_example = state.at("next_example").get<uint64_t>();
  const RestoredVector moments[] = {{"exp_avg", parts_->first_moment.values()},
                                    {"exp_avg_sq", parts_->second_moment.values()}};
  load_vectors(folder / "optimizer.safetensors", moments, parts_->tensors);
  parts_->optimizer = optim::AdamW(parts_->settings(parts_->step), parts_->first_moment.values(),
                                   parts_->second_moment.values(), parts_->step);
}

namespace {

void save_model(const Path& to, const SftConfig& config, const model::Parameters& parameters) {
  const Path source = config.model;
  std::vector<io::StoredTensor> tensors;
  for (const auto& slot : parameters.slots())
    tensors.push_back({slot.name, DType::f32, slot.shape,
                       std::as_bytes(parameters.values().subspan(static_cast<size_t>(slot.offset),
                                                                 static_cast<size_t>(slot.size)))});
  const Path generation = source / "generation_config.json";
  io::save_model_directory(
      to,
      {.source_directory = source,
       .config_json = read_file(source / "config.json"),
       .generation_config_json = std::filesystem::exists(generation) ? read_file(generation) : "",
       .base_model = config.model,
       .description = "Supervised fine-tuning by ropd sft."},
      tensors);
}

}  // namespace

RunOutcome run_sft(const SftConfig& config, const ExampleStream& examples, uint64_t total_steps,
                   const std::function<model::Parameters()>& start) {
  const Path output = config.output;
  const std::string yaml = config_to_yaml(config, true);
  const bool exists = std::filesystem::exists(output / "config.yaml");
  if (exists && read_file(output / "config.yaml") != yaml)
    fail(output.string(),
         ": holds another run (its config.yaml differs); choose another output or remove it");
  const auto directory = exists
                             ? io::RunDirectory::open(output)
                             : io::RunDirectory::create(output, yaml, io::describe_environment("ropd sft"));
  if (std::filesystem::exists(output / "model")) {
    log_info(output.string(), ": done already");
    return RunOutcome::done;
  }
  model::Parameters parameters = start();
  SftTrainer trainer(config, parameters, total_steps);
  io::CheckpointStore store(directory.checkpoints());
  if (const auto newest = io::newest_valid_checkpoint(directory.checkpoints())) {
    const io::ModelDirectory saved(newest->path / "model");
    io::require_same_model(saved.config(), saved.path().string(), parameters.config());
    const auto loaded = model::Parameters::load(saved);
    std::copy(loaded.values().begin(), loaded.values().end(), parameters.values().begin());
    trainer.restore(newest->path);
    log_info("going on from ", newest->path.string());
  }
  io::require_free_space(output, 8 * sizeof(float) * parameters.values().size(),
                         "two checkpoints and the model");
  const auto save = [&] {
    store.save(trainer.steps_done(), {.keep = config.checkpoint_keep, .keep_steps = {}},
               [&](const Path& folder) {
                 save_model(folder / "model", config, parameters);
                 trainer.save(folder);
               });
  };
  if (std::filesystem::exists(output / "metrics.jsonl")) {
    // Lines behind the checkpoint are written again, with the same numbers.
    std::string kept;
    std::istringstream lines(read_file(output / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      if (parse_json(line, "metrics.jsonl").at("step").get<uint64_t>() <= trainer.steps_done())
        kept += line + "\n";
    write_file_atomically(output / "metrics.jsonl", kept);
  }
  AppendFile metrics(output / "metrics.jsonl");
  Progress progress("sft " + output.filename().string(), total_steps, "tok");
  uint64_t tokens = 0;
  double smoothed = 0;
  while (trainer.steps_done() < total_steps) {
    const SftProgress s = trainer.step(examples);
    tokens += s.tokens;
    smoothed = smoothed == 0 ? s.loss : 0.95 * smoothed + 0.05 * s.loss;
    metrics.append_unsynced(Json{
        {"step", s.step},
        {"loss", s.loss},
        {"grad_norm", s.grad_norm},
        {"lr", s.learning_rate},
        {"tokens", s.tokens},
        {"loss_tokens",
         s.loss_tokens}}.dump());
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
  save_model(output / "model", config, parameters);
  return RunOutcome::done;
}

}  // namespace ropd::train
