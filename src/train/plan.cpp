#include "train/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/memory_info.h"
#include "base/progress.h"
#include "distill/gradient.h"
#include "distill/scoring.h"
#include "io/hf_config.h"
#include "io/input_ledger.h"
#include "io/model_directory.h"
#include "io/model_path.h"
#include "io/read_speed.h"
#include "kernels/matmul.h"
#include "kernels/vocab_head.h"
#include "model/block.h"
#include "model/bounded_model.h"
#include "model/forward.h"
#include "model/kv_cache.h"
#include "model/weights.h"
#include "train/minibatch.h"
#include "train/rank_slices.h"
#include "train/run_state.h"

namespace ropd::train {
namespace {

ModelConfig shape_of(const std::string& directory, const std::string& base) {
  const Path path = io::base_of(directory, base) / "config.json";
  return io::parse_model_config(read_file(path), path.string());
}

uint64_t element_bytes(const ModelConfig& shape) { return shape.dtype == "float32" ? 4 : 2; }

uint64_t elements(int64_t count) { return static_cast<uint64_t>(count); }

// Longest prompt and response together.
uint64_t longest_sequence(const TrainConfig& config, const ModelConfig& student) {
  return std::min<uint64_t>(config.data.max_prompt_tokens + config.rollout.max_response_tokens,
                            elements(student.max_position_embeddings));
}

// A scoring pass: one layer's trace and scratch, the states, those of responses.
uint64_t scoring_bytes(const ModelConfig& c, uint64_t tokens) {
  return tokens * (model::forward_bytes_per_token(c) + elements(c.hidden_size) * sizeof(float));
}

// Layers whose activations model::TrainingPass keeps for the backward pass; the others are computed again.
uint64_t kept_layers(const TrainConfig& config, const ModelConfig& c, uint64_t tokens) {
  const uint64_t trace = model::trace_bytes_per_token(c) * tokens;
  return std::min(elements(c.num_layers), activation_budget(config) / std::max<uint64_t>(trace, 1));
}

// model::TrainingPass and distill::minibatch_gradient over one microbatch.
uint64_t activation_bytes(const TrainConfig& config, const ModelConfig& c, uint64_t tokens) {
  const uint64_t trace = model::trace_bytes_per_token(c) * tokens, layers = elements(c.num_layers),
                 width = elements(c.hidden_size) * sizeof(float) * tokens,
                 kept = kept_layers(config, c, tokens);
  constexpr uint64_t kWideBuffers = 6;  // x, last output, states, their responses; gradients at two of them
  return kept * trace + (layers - kept) * width + (kept < layers ? trace : 0) +
         model::scratch_bytes_per_token(c, true) * tokens + kWideBuffers * width;
}

// The most that one scoring batch may hold, and one microbatch of a shard.
uint64_t at_most(const TrainConfig& config, const ModelConfig& student, uint64_t responses, uint64_t tokens) {
  const uint64_t longest = longest_sequence(config, student);
  return std::min(responses * longest, std::max(tokens, longest));
}
uint64_t scored_tokens(const TrainConfig& config, const ModelConfig& student) {
  return at_most(config, student, config.train.responses_per_iteration,
                 elements(distill::ScoringConfig{}.batch_tokens));
}
uint64_t minibatch_size(const TrainConfig& config) {
  return std::min(config.train.minibatch, config.train.responses_per_iteration);
}
uint64_t responses_of_shard(const TrainConfig& config) {
  return (minibatch_size(config) + config.train.shards - 1) / config.train.shards;
}
uint64_t trained_tokens(const TrainConfig& config, const ModelConfig& student) {
  return at_most(config, student, responses_of_shard(config), config.train.microbatch_tokens);
}
// Not the most that a microbatch may hold, but what it has where responses are of this mean length.
uint64_t usually_trained_tokens(const TrainConfig& config, const ModelConfig& student, double mean_length) {
  const double shard =
      static_cast<double>(responses_of_shard(config)) * (usual_prompt_tokens(config) + mean_length);
  return std::min(trained_tokens(config, student), static_cast<uint64_t>(shard));
}

void add_sampling(std::vector<MemoryItem>& items, const TrainConfig& config, const PlannedModels& models) {
  constexpr int64_t kPageTokens = 32;
  const ModelConfig& student = models.student;
  const uint64_t element = is_bf16(config.rollout.precision) ? 2 : 4,
                 longest = longest_sequence(config, student);
  const auto& memory_gb = config.rollout.memory_gb.value;
  const uint64_t one_sequence = model::KvCache::page_bytes(student, config.rollout.precision, kPageTokens) *
                                ((longest + kPageTokens - 1) / kPageTokens);
  items.push_back({"rollout weights (packed)", element * models.student_parameters, "rollout.precision=bf16",
                   Phase::sampling});
  items.push_back(
      {memory_gb ? "keys and values" : "keys and values (one response at least, then what is free)",
       memory_gb ? static_cast<uint64_t>(*memory_gb * 1e9) : one_sequence,
       memory_gb ? "rollout.memory_gb" : "rollout.max_response_tokens", Phase::sampling});
}

// What is held from the beginning to the end of a run.
std::vector<MemoryItem> lasting_items(const TrainConfig& config, const PlannedModels& models,
                                      const Trainable& trainable, int ranks) {
  std::vector<MemoryItem> items;
  if (trainable.is_adapter) items.push_back({"student weights (mapped, frozen)", models.student_bytes, ""});
  items.push_back({trainable.is_adapter ? "adapter (f32)" : "student weights (f32 master)",
                   4 * trainable.parameters, ""});
  if (config.train.optimizer_storage == Storage::memory)
    items.push_back(
        {"AdamW state", 8 * trainable.parameters / elements(ranks), "train.optimizer_storage=file"});
  if (make_curriculum(config, models.steps_before).can_watch() && config.trigger.storage == Storage::memory)
    items.push_back(
        {"trigger (two gradients)", 8 * trainable.parameters / elements(ranks), "trigger.storage=file"});
  return items;
}

void add_merged_layer(std::vector<MemoryItem>& items, const Trainable& trainable, Phase phase) {
  if (trainable.is_adapter)
    items.push_back({"one layer with its adapter", trainable.merged_layer_bytes, "adapter.targets", phase});
}

// memory_bytes: for the teacher, what a run always holds taken off.
TeacherPlan plan_teacher(const TrainConfig& config, const PlannedModels& models, uint64_t memory_bytes,
                         double positions) {
  const auto batch = static_cast<int64_t>(scored_tokens(config, models.student));
  TeacherPlan plan{.stored_bytes = models.teacher_bytes};
  if (model::fits_memory(plan.stored_bytes, models.teacher, memory_bytes, batch)) return plan;
  const auto budget = model::divide_memory(models.teacher_parts, models.teacher, memory_bytes, batch);
  plan.is_streamed = true;
  plan.reads_ahead = budget.reads_ahead;
  plan.window_bytes = budget.window_bytes;
  plan.positions = static_cast<uint64_t>(budget.positions);
  plan.passes = static_cast<uint64_t>(std::ceil(positions / static_cast<double>(budget.positions)));
  if (config.train.rescore == Rescore::minibatch)
    plan.passes = std::max(plan.passes, steps_per_iteration(config));
  if (objective_config(config, {}).needs_full_teacher()) {  // a pass for every microbatch
    const double microbatches = positions / static_cast<double>(config.train.microbatch_tokens);
    plan.passes +=
        std::max(static_cast<uint64_t>(std::ceil(microbatches)),
                 steps_per_iteration(config) * std::min(config.train.shards, minibatch_size(config)));
  }
  plan.read_bytes =
      plan.passes * std::accumulate(models.teacher_parts.begin(), models.teacher_parts.end(), uint64_t{0});
  return plan;
}

void add_teacher(std::vector<MemoryItem>& items, const TeacherPlan& plan, const ModelConfig& teacher,
                 uint64_t tokens, double positions, Phase phase) {
  const auto waiting = static_cast<uint64_t>(std::min(positions, static_cast<double>(plan.positions)));
  if (plan.is_streamed)
    items.push_back({plan.reads_ahead ? "teacher weights (streamed, two layers at a time)"
                                      : "teacher weights (streamed, a layer at a time)",
                     plan.window_bytes, "", phase});
  else
    items.push_back({"teacher weights (mapped)", plan.stored_bytes, "train.teacher_memory_gb", phase});
  items.push_back(
      {"teacher activations", scoring_bytes(teacher, tokens), "rollout.max_response_tokens", phase});
  if (plan.is_streamed && waiting > tokens)
    items.push_back({"teacher states between layers",
                     (waiting - tokens) * model::waiting_bytes_per_token(teacher), "train.teacher_memory_gb",
                     phase});
}

// The summed gradient and those of shards; on several ranks a slice of the first, and of the others those that a
// rank computes at a time (FlatLearner).
void add_gradients(std::vector<MemoryItem>& items, const ModelConfig& student, uint64_t parameters,
                   uint64_t shards, int ranks) {
  const uint64_t count = elements(ranks);
  const auto execution = model::choose_execution(student, read_memory_info().total_bytes);
  const uint64_t alone = distill::num_shard_gradients(execution, shards),
                 held = ranks == 1                                       ? alone
                        : execution.sharing == model::Sharing::sequences ? (shards + count - 1) / count
                                                                         : 1;
  items.push_back(
      {ranks == 1 ? "gradient" : "gradient (own slice)", 4 * parameters / count, "", Phase::updates});
  items.push_back({"gradients of shards", 4 * parameters * held, "train.shards=1", Phase::updates});
}

void add_updates(std::vector<MemoryItem>& items, const TrainConfig& config, const PlannedModels& models,
                 const Trainable& trainable, int ranks) {
  const ModelConfig& student = models.student;
  const uint64_t tokens = trained_tokens(config, student);
  add_gradients(items, student, trainable.parameters, std::min(config.train.shards, minibatch_size(config)),
                ranks);
  add_merged_layer(items, trainable, Phase::updates);
  items.push_back({"activations", activation_bytes(config, student, tokens),
                   "train.microbatch_tokens, train.activation_memory_gb or rollout.max_response_tokens",
                   Phase::updates});
  items.push_back({"vocabulary blocks",
                   std::min<uint64_t>(kernels::vocab_scratch_bytes(config.train.precision),
                                      tokens * elements(student.vocab_size) * sizeof(float)),
                   "", Phase::updates});
}

uint64_t sum_of(std::span<const MemoryItem> items) {
  uint64_t sum = 0;
  for (const MemoryItem& item : items) sum += item.bytes;
  return sum;
}

// Fills memory, teacher, peak and memory_bytes.
void plan_memory(Plan& plan, const TrainConfig& config, const PlannedModels& models,
                 const Trainable& trainable, const MemoryInfo& machine) {
  const double positions = plan.assumed_length * static_cast<double>(config.train.responses_per_iteration);
  const uint64_t scored = scored_tokens(config, models.student),
                 trained = trained_tokens(config, models.student);
  std::vector<MemoryItem>& items = plan.memory;
  items = lasting_items(config, models, trainable, plan.ranks);
  const uint64_t lasting = sum_of(items), usable = usable_bytes(machine);
  plan.teacher = plan_teacher(
      config, models, teacher_budget(config).value_or(usable > lasting ? usable - lasting : 0), positions);
  if (needs_sampling(config)) add_sampling(items, config, models);
  items.push_back({"student activations", scoring_bytes(models.student, scored),
                   "rollout.max_response_tokens", Phase::student_scoring});
  add_merged_layer(items, trainable, Phase::student_scoring);
  add_teacher(items, plan.teacher, models.teacher, scored, positions, Phase::teacher_scoring);
  add_updates(items, config, models, trainable, plan.ranks);
  if (objective_config(config, {}).needs_full_teacher()) {
    add_teacher(items, plan.teacher, models.teacher, trained, 0, Phase::updates);
    items.push_back({"teacher states", trained * elements(models.teacher.hidden_size) * sizeof(float),
                     "train.microbatch_tokens", Phase::updates});
  }
  for (const MemoryItem& item : items)
    if (const uint64_t bytes = plan.phase_bytes(item.phase); bytes > plan.memory_bytes) {
      plan.memory_bytes = bytes;
      plan.peak = item.phase;
    }
}

// Disk: checkpoints, rollouts, scratch files.
void plan_disk(Plan& plan, const TrainConfig& config, const PlannedModels& models,
               const Trainable& trainable) {
  const bool watches = make_curriculum(config, models.steps_before).can_watch();
  if (config.train.optimizer_storage == Storage::file) {
    plan.scratch_bytes += 8 * trainable.parameters;
    plan.optimizer_file_bytes = 16 * trainable.parameters;  // both moments, read and written
  }
  if (watches && config.trigger.storage == Storage::file) {
    plan.scratch_bytes += 8 * trainable.parameters;
    plan.trigger_file_bytes = 8 * trainable.parameters;  // the running mean, read and written
  }
  const bool is_rounded =
      !trainable.is_adapter && (config.checkpoint.dtype.value ? config.checkpoint.dtype.value == DType::bf16
                                                              : models.student.dtype == "bfloat16");
  plan.checkpoint_bytes = ((is_rounded ? 14 : 12) + (watches ? 8 : 0)) * trainable.parameters;
  const uint64_t kept =
      config.checkpoint.keep == 0 ? plan.iterations : std::min(config.checkpoint.keep, plan.iterations);
  constexpr uint64_t kBytesPerToken = 8;  // of a response in JSONL: id and text
  plan.disk_bytes = (kept + 1 + config.checkpoint.keep_steps.size()) * plan.checkpoint_bytes +
                    plan.scratch_bytes +
                    static_cast<uint64_t>(plan.assumed_length) * kBytesPerToken *
                        (plan.consumed + config.curriculum.bank.responses);
  plan.free_disk_bytes = free_disk_bytes(existing_folder(config.output));
}

void plan_time(Plan& plan, const TrainConfig& config, const PlannedModels& models, const Trainable& trainable,
               const Machine& machine) {
  plan.flops = machine.flops;
  plan.read_bytes_per_second = machine.read_bytes_per_second;
  plan.is_time_measured = machine.speeds.has_value();
  StageSpeeds speeds =
      machine.speeds ? *machine.speeds
                     : guessed_speeds(models.student, models.teacher, machine.flops, trainable.is_adapter);
  if (machine.read_bytes_per_second > 0) speeds.disk_bytes = machine.read_bytes_per_second;
  const uint64_t trained = usually_trained_tokens(config, models.student, plan.assumed_length);
  const double layers = static_cast<double>(models.student.num_layers),
               kept = static_cast<double>(kept_layers(config, models.student, trained));
  plan.seconds = stage_seconds(config, models.student, models.teacher, speeds,
                               {.response_tokens = plan.assumed_length,
                                .recomputed_layers = 1 - kept / layers,
                                .parameters = trainable.parameters,
                                .is_watched = make_curriculum(config, models.steps_before).can_watch(),
                                .scratch_bytes = plan.optimizer_file_bytes + plan.trigger_file_bytes});
  // Ranks beyond the shards have no part in the gradient.
  const double ranks = plan.ranks,
               learners = static_cast<double>(std::min<uint64_t>(elements(plan.ranks), config.train.shards));
  plan.seconds.sampling /= ranks;
  plan.seconds.student /= ranks;
  plan.seconds.teacher /= ranks;
  plan.seconds.updates /= learners;
  plan.seconds.updates += static_cast<double>(plan.minibatches.size() * plan.step_bytes) / network_bytes(10);
  if (machine.read_bytes_per_second > 0)
    plan.teacher.read_seconds = static_cast<double>(plan.teacher.read_bytes) / machine.read_bytes_per_second;
  plan.seconds.teacher = plan.teacher.reads_ahead ? std::max(plan.seconds.teacher, plan.teacher.read_seconds)
                                                  : plan.seconds.teacher + plan.teacher.read_seconds;
  plan.seconds_per_iteration = plan.seconds.sum();
  if (make_curriculum(config, models.steps_before).uses_initial_bank())
    plan.bank_seconds =
        sampling_seconds(config, models.student, speeds,
                         static_cast<double>(config.curriculum.bank.responses), plan.assumed_length) /
        ranks;
}

}  // namespace

std::string phase_name(Phase phase) {
  switch (phase) {
    case Phase::always:
      return "always";
    case Phase::sampling:
      return "sampling";
    case Phase::student_scoring:
      return "scoring by the student";
    case Phase::teacher_scoring:
      return "scoring by the teacher";
    case Phase::updates:
      return "updates";
  }
  fail("no such phase");
}

uint64_t Plan::phase_bytes(Phase phase) const {
  uint64_t sum = 0;
  for (const MemoryItem& item : memory)
    if (item.phase == phase || item.phase == Phase::always) sum += item.bytes;
  return sum;
}

double measure_flops() {
  constexpr int64_t kRows = 256, kWidth = 1024;
  std::vector<float> x(kRows * kWidth, 0.5f), w(kWidth * kWidth, 0.25f), y(kRows * kWidth);
  const auto begin = std::chrono::steady_clock::now();
  double seconds = 0, done = 0;
  while (seconds < 0.3) {
    kernels::matmul(y, x, {w.data(), DType::f32, kWidth, kWidth}, Precision::f32);
    done += 2.0 * kRows * kWidth * kWidth;
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return done / seconds;
}

double measure_teacher_reads(const TrainConfig& config) {
  if (!std::filesystem::is_directory(config.teacher)) return 0;
  Path largest;
  uint64_t bytes = 0;
  for (const io::InputFile& file : io::model_files(config.teacher, config.teacher_base))
    if (const uint64_t size = std::filesystem::file_size(file.path); size > bytes) {
      bytes = size;
      largest = file.path;
    }
  constexpr double kSeconds = 0.3;
  return largest.extension() == ".safetensors" ? io::measure_read_speed(largest, kSeconds) : 0;
}

PlannedModels read_shapes(const TrainConfig& config) {
  PlannedModels models{.student = shape_of(config.student, config.student_base),
                       .teacher = shape_of(config.teacher, config.teacher_base)};
  models.student_parameters = elements(model::parameter_count(models.student));
  models.teacher_parameters = elements(model::parameter_count(models.teacher));
  models.student_bytes = models.student_parameters * element_bytes(models.student);
  models.teacher_bytes = models.teacher_parameters * element_bytes(models.teacher);
  models.teacher_parts = model::stream_parts(models.teacher, element_bytes(models.teacher));
  models.steps_before = steps_before(config);
  return models;
}

uint64_t steps_before(const TrainConfig& config) {
  if (!config.continue_from || !std::filesystem::exists(Path(*config.continue_from) / "state.json")) return 0;
  return read_run_state(*config.continue_from).run.step;
}

Path existing_folder(const Path& folder) {
  Path existing = std::filesystem::absolute(folder);
  while (!std::filesystem::exists(existing)) existing = existing.parent_path();
  return existing;
}

Trainable trainable_of(const TrainConfig& config, const PlannedModels& models) {
  if (!config.adapter) return {.parameters = models.student_parameters};
  const auto matrices =
      config.adapter->path
          ? io::AdapterDirectory(io::find_model(*config.adapter->path), models.student).matrices()
          : io::adapter_matrices(models.student, adapter_config(*config.adapter), "adapter");
  Trainable trainable{.is_adapter = true};
  std::map<std::string, uint64_t> of_layers;
  for (const AdapterMatrix& m : matrices) {
    trainable.parameters += elements(m.rank * (m.inputs + m.outputs));
    uint64_t& bytes = of_layers[m.module.substr(0, m.module.find('.', std::string("model.layers.").size()))];
    bytes += elements(m.inputs * m.outputs) * (config.train.precision == Precision::f32 ? 4 : 2);
    trainable.merged_layer_bytes = std::max(trainable.merged_layer_bytes, bytes);
  }
  return trainable;
}

double assumed_length(const TrainConfig& config, std::optional<double> mean_tokens) {
  const double longest = static_cast<double>(config.rollout.max_response_tokens);
  if (mean_tokens && *mean_tokens > longest)
    fail("a mean length of ", *mean_tokens, " tokens is beyond rollout.max_response_tokens, which is ",
         longest);
  return mean_tokens.value_or(std::max(1.0, longest / 4));
}

Plan make_plan(const TrainConfig& config, const Machine& machine) {
  const PlannedModels models = read_shapes(config);
  return make_plan(config, machine, models, trainable_of(config, models));
}

Plan make_plan(const TrainConfig& config, const Machine& machine, const PlannedModels& models,
               const Trainable& trainable) {
  MemoryInfo memory = read_memory_info();
  if (machine.memory_bytes) memory = {*machine.memory_bytes, *machine.memory_bytes};
  Plan plan;
  plan.iterations = config.train.iterations;
  plan.consumed = plan.iterations * config.train.responses_per_iteration;
  plan.steps = plan.iterations * steps_per_iteration(config);
  plan.minibatches = minibatch_sizes(config.train.responses_per_iteration, config.train.minibatch);
  plan.curriculum = make_curriculum(config, models.steps_before).describe();
  plan.student_parameters = models.student_parameters;
  plan.teacher_parameters = models.teacher_parameters;
  plan.trained_parameters = trainable.parameters;
  plan.ranks = machine.ranks;
  plan.step_bytes = step_bytes(trainable.parameters, config.train.shards, machine.ranks);
  plan.assumed_length = assumed_length(config, machine.mean_tokens);
  plan.available_bytes = memory.available_bytes;
  plan_memory(plan, config, models, trainable, memory);
  plan_disk(plan, config, models, trainable);
  plan_time(plan, config, models, trainable, machine);
  return plan;
}

void check_plan(const Plan& plan, const std::string& proposal) {
  if (plan.memory_bytes > plan.available_bytes) {
    std::string help = proposal;
    std::vector<MemoryItem> items = plan.memory;
    std::stable_sort(items.begin(), items.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    for (const MemoryItem& item : items)
      if (help.empty() && !item.setting.empty() && (item.phase == plan.peak || item.phase == Phase::always)) {
        help = item.name + " take " + format_bytes(static_cast<double>(item.bytes)) + ": " + item.setting;
      }
    fail("the run needs ", format_bytes(static_cast<double>(plan.memory_bytes)), " of memory, ",
         format_bytes(static_cast<double>(plan.available_bytes)), " are available (most in ",
         phase_name(plan.peak), "; ", help, ")");
  }
  if (plan.disk_bytes > plan.free_disk_bytes)
    fail("the run needs about ", format_bytes(static_cast<double>(plan.disk_bytes)), " of disk, ",
         format_bytes(static_cast<double>(plan.free_disk_bytes)),
         " are free (fewer checkpoints: checkpoint.keep)");
}

namespace {

std::string teacher_text(const Plan& plan) {
  const TeacherPlan& teacher = plan.teacher;
  if (!teacher.is_streamed) return "resident";
  std::string text =
      fmt::format("streamed: {} pass{} an iteration of up to {} positions, {} read", teacher.passes,
                  teacher.passes == 1 ? "" : "es", format_count(static_cast<double>(teacher.positions)),
                  format_bytes(static_cast<double>(teacher.read_bytes)));
  if (teacher.read_seconds > 0)
    text += fmt::format(", {} at the {}/s measured now", format_duration(teacher.read_seconds),
                        format_bytes(plan.read_bytes_per_second));
  return text;
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::string text = fmt::format("curriculum   {}\n", plan.curriculum);
  const bool are_equal =
      std::count(plan.minibatches.begin(), plan.minibatches.end(), plan.minibatches.front()) ==
      static_cast<ptrdiff_t>(plan.minibatches.size());
  std::string sizes;
  if (are_equal && plan.minibatches.size() > 4)
    sizes = fmt::format("{} x {}", plan.minibatches.size(), plan.minibatches.front());
  else
    for (const uint64_t size : plan.minibatches) sizes += (sizes.empty() ? "" : " + ") + std::to_string(size);
  text += fmt::format(
      "budget       {} iterations, C = {} responses, U = {} steps; an iteration is {} responses\n",
      plan.iterations, plan.consumed, plan.steps, sizes);
  text += fmt::format("student      {} parameters{}\nteacher      {} parameters, {}\n",
                      format_count(static_cast<double>(plan.student_parameters)),
                      plan.trained_parameters == plan.student_parameters
                          ? ""
                          : fmt::format(", an adapter of {} is trained",
                                        format_count(static_cast<double>(plan.trained_parameters))),
                      format_count(static_cast<double>(plan.teacher_parameters)), teacher_text(plan));
  if (plan.ranks > 1)
    text += fmt::format("ranks        {}; each sends {} a step: {:.2f} s at 10 Gbit/s, {:.2f} s at 100\n",
                        plan.ranks, format_bytes(static_cast<double>(plan.step_bytes)),
                        static_cast<double>(plan.step_bytes) / network_bytes(10),
                        static_cast<double>(plan.step_bytes) / network_bytes(100));
  text += plan.ranks > 1 ? "memory of a rank\n" : "memory\n";
  std::optional<Phase> phase;
  for (const MemoryItem& item : plan.memory) {
    if (item.phase != phase) {
      phase = item.phase;
      text += item.phase == Phase::always
                  ? "  the whole run:\n"
                  : fmt::format("  {}, {} with the above:\n", phase_name(item.phase),
                                format_bytes(static_cast<double>(plan.phase_bytes(item.phase))));
    }
    text += fmt::format("  {:>10}  {}\n", format_bytes(static_cast<double>(item.bytes)), item.name);
  }
  text += fmt::format("  {:>10}  at most, in {}; {} available\n",
                      format_bytes(static_cast<double>(plan.memory_bytes)), phase_name(plan.peak),
                      format_bytes(static_cast<double>(plan.available_bytes)));
  if (plan.optimizer_file_bytes > 0)
    text += fmt::format("scratch      {} of AdamW's moments read and written an update\n",
                        format_bytes(static_cast<double>(plan.optimizer_file_bytes)));
  if (plan.trigger_file_bytes > 0)
    text += fmt::format("scratch      {} of the trigger's mean read and written an update that it watches\n",
                        format_bytes(static_cast<double>(plan.trigger_file_bytes)));
  text += fmt::format("disk         {} (a checkpoint is {}); {} free\n",
                      format_bytes(static_cast<double>(plan.disk_bytes)),
                      format_bytes(static_cast<double>(plan.checkpoint_bytes)),
                      format_bytes(static_cast<double>(plan.free_disk_bytes)));
  const double all = plan.bank_seconds + plan.seconds_per_iteration * static_cast<double>(plan.iterations);
  text += fmt::format(
      "time         about {} an iteration: sampling {}, student {}, teacher {}, updates {}\n"
      "             {} in all{}, if responses have {:.0f} tokens on average and the machine does as now\n"
      "             ({:.0f} GFLOP/s in products{})\n",
      format_duration(plan.seconds_per_iteration), format_duration(plan.seconds.sampling),
      format_duration(plan.seconds.student), format_duration(plan.seconds.teacher),
      format_duration(plan.seconds.updates), format_duration(all),
      plan.bank_seconds > 0 ? ", " + format_duration(plan.bank_seconds) + " of it for the bank" : "",
      plan.assumed_length, plan.flops / 1e9,
      plan.is_time_measured ? "; stages tried with models of these shapes"
                            : "; a guess from that alone: ropd plan tries");
  return text;
}

}  // namespace ropd::train
