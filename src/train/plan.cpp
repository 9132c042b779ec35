#include "train/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/memory_info.h"
#include "base/progress.h"
#include "distill/gradient.h"
#include "distill/scoring.h"
#include "io/hf_config.h"
#include "io/model_directory.h"
#include "kernels/matmul.h"
#include "kernels/vocab_head.h"
#include "model/block.h"
#include "model/kv_cache.h"
#include "model/weights.h"
#include "train/minibatch.h"
#include "train/rank_slices.h"

namespace ropd::train {
namespace {

ModelConfig shape_of(const std::string& directory) {
  const Path path = Path(directory) / "config.json";
  return io::parse_model_config(read_file(path), path.string());
}

uint64_t stored_bytes(const ModelConfig& shape) {
  return static_cast<uint64_t>(model::parameter_count(shape)) * (shape.dtype == "float32" ? 4 : 2);
}

// Parameters a token passes through in the blocks and the head; of experts only those it is sent to.
double active_parameters(const ModelConfig& c) {
  double sum = static_cast<double>(c.vocab_size * c.hidden_size);
  for (int64_t layer = 0; layer < c.num_layers; ++layer) {
    const double attention =
        static_cast<double>(c.hidden_size * c.head_dim * (2 * c.num_heads + 2 * c.num_kv_heads));
    const bool is_moe = c.is_moe() && c.is_moe_layer[static_cast<size_t>(layer)];
    const double inner = is_moe ? static_cast<double>(c.moe_intermediate_size * c.num_experts_per_token)
                                : static_cast<double>(c.intermediate_size);
    sum += attention + 3 * inner * static_cast<double>(c.hidden_size);
  }
  return sum;
}

uint64_t elements(int64_t count) { return static_cast<uint64_t>(count); }

// Longest prompt and response together.
uint64_t longest_sequence(const TrainConfig& config, const ModelConfig& student) {
  return std::min<uint64_t>(config.data.max_prompt_tokens + config.rollout.max_response_tokens,
                            elements(student.max_position_embeddings));
}

// A scoring pass: one layer's trace and scratch, the residual stream, the states, those of responses.
uint64_t scoring_bytes(const ModelConfig& c, uint64_t tokens) {
  return tokens * (model::trace_bytes_per_token(c) + model::scratch_bytes_per_token(c, false) +
                   3 * elements(c.hidden_size) * sizeof(float));
}

// model::TrainingPass and distill::minibatch_gradient over one microbatch.
uint64_t activation_bytes(const TrainConfig& config, const ModelConfig& c, uint64_t tokens) {
  const uint64_t trace = model::trace_bytes_per_token(c) * tokens, layers = elements(c.num_layers),
                 width = elements(c.hidden_size) * sizeof(float) * tokens;
  const uint64_t kept = std::min(layers, activation_budget(config) / std::max<uint64_t>(trace, 1));
  constexpr uint64_t kWideBuffers = 6;  // x, last output, states, their responses; gradients at two of them
  return kept * trace + (layers - kept) * width + (kept < layers ? trace : 0) +
         model::scratch_bytes_per_token(c, true) * tokens + kWideBuffers * width;
}

void add_sampling(std::vector<MemoryItem>& items, const TrainConfig& config, const ModelConfig& student) {
  constexpr int64_t kPageTokens = 32;
  const uint64_t element = config.rollout.precision == Precision::bf16 ? 2 : 4,
                 longest = longest_sequence(config, student);
  const auto& memory_gb = config.rollout.memory_gb.value;
  const uint64_t one_sequence = model::KvCache::page_bytes(student, config.rollout.precision, kPageTokens) *
                                ((longest + kPageTokens - 1) / kPageTokens);
  items.push_back({"rollout weights (packed)", element * elements(model::parameter_count(student)),
                   "rollout.precision=bf16", Phase::sampling});
  items.push_back(
      {memory_gb ? "keys and values" : "keys and values (one response at least, then what is free)",
       memory_gb ? static_cast<uint64_t>(*memory_gb * 1e9) : one_sequence,
       memory_gb ? "rollout.memory_gb" : "rollout.max_response_tokens", Phase::sampling});
}

// The summed gradient and those of shards; on several ranks a slice of the first, and of the others those that a
// rank computes at a time (FullLearner).
void add_gradients(std::vector<MemoryItem>& items, const ModelConfig& student, uint64_t shards, int ranks) {
  const uint64_t parameters = elements(model::parameter_count(student)), count = elements(ranks);
  const auto execution = model::choose_execution(student, read_memory_info().total_bytes);
  const uint64_t alone = distill::num_shard_gradients(execution, shards),
                 held = ranks == 1                                       ? alone
                        : execution.sharing == model::Sharing::sequences ? (shards + count - 1) / count
                                                                         : 1;
  items.push_back(
      {ranks == 1 ? "gradient" : "gradient (own slice)", 4 * parameters / count, "", Phase::updates});
  items.push_back({"gradients of shards", 4 * parameters * held, "train.shards=1", Phase::updates});
}

std::vector<MemoryItem> memory_items(const TrainConfig& config, const ModelConfig& student,
                                     const ModelConfig& teacher, int ranks) {
  const uint64_t parameters = elements(model::parameter_count(student)),
                 longest = longest_sequence(config, student);
  const uint64_t minibatch = std::min(config.train.minibatch, config.train.responses_per_iteration);
  const auto at_most = [&](uint64_t responses, uint64_t tokens) {
    return std::min(responses * longest, std::max(tokens, longest));
  };
  const uint64_t scored = at_most(config.train.responses_per_iteration,
                                  elements(distill::ScoringConfig{}.batch_tokens)),
                 trained = at_most((minibatch + config.train.shards - 1) / config.train.shards,
                                   config.train.microbatch_tokens);
  std::vector<MemoryItem> items = {{"student weights (f32 master)", 4 * parameters, ""},
                                   {"AdamW state", 8 * parameters / elements(ranks), ""}};
  if (make_curriculum(config).can_watch() && config.trigger.storage == Storage::memory)
    items.push_back({"trigger (two gradients)", 8 * parameters / elements(ranks), "trigger.storage=file"});
  if (needs_sampling(config)) add_sampling(items, config, student);
  items.push_back({"student activations", scoring_bytes(student, scored), "rollout.max_response_tokens",
                   Phase::student_scoring});
  const auto add_teacher = [&](uint64_t tokens, Phase phase) {
    items.push_back({"teacher weights (mapped)", stored_bytes(teacher), "a smaller teacher", phase});
    items.push_back(
        {"teacher activations", scoring_bytes(teacher, tokens), "rollout.max_response_tokens", phase});
  };
  add_teacher(scored, Phase::teacher_scoring);
  add_gradients(items, student, std::min(config.train.shards, minibatch), ranks);
  items.push_back({"activations", activation_bytes(config, student, trained),
                   "train.microbatch_tokens, train.activation_memory_gb or rollout.max_response_tokens",
                   Phase::updates});
  items.push_back({"vocabulary blocks",
                   std::min<uint64_t>(kernels::kVocabScratchBytes,
                                      trained * elements(student.vocab_size) * sizeof(float)),
                   "", Phase::updates});
  if (objective_config(config, {}).needs_full_teacher()) {
    add_teacher(trained, Phase::updates);
    items.push_back({"teacher states", trained * elements(teacher.hidden_size) * sizeof(float),
                     "train.microbatch_tokens", Phase::updates});
  }
  return items;
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

Plan make_plan(const TrainConfig& config, double flops, int ranks) {
  const ModelConfig student = shape_of(config.student), teacher = shape_of(config.teacher);
  Plan plan;
  plan.iterations = config.train.iterations;
  plan.consumed = plan.iterations * config.train.responses_per_iteration;
  plan.steps = plan.iterations * steps_per_iteration(config);
  plan.minibatches = minibatch_sizes(config.train.responses_per_iteration, config.train.minibatch);
  plan.curriculum = make_curriculum(config).describe();
  plan.student_parameters = static_cast<uint64_t>(model::parameter_count(student));
  plan.teacher_parameters = static_cast<uint64_t>(model::parameter_count(teacher));
  plan.ranks = ranks;
  plan.step_bytes = step_bytes(plan.student_parameters, config.train.shards, ranks);
  plan.memory = memory_items(config, student, teacher, ranks);
  for (const MemoryItem& item : plan.memory)
    if (const uint64_t bytes = plan.phase_bytes(item.phase); bytes > plan.memory_bytes) {
      plan.memory_bytes = bytes;
      plan.peak = item.phase;
    }
  plan.available_bytes = read_memory_info().available_bytes;

  const uint64_t trigger_bytes = make_curriculum(config).can_watch() ? 8 * plan.student_parameters : 0;
  plan.checkpoint_bytes = 12 * plan.student_parameters + trigger_bytes;
  const uint64_t kept =
      config.checkpoint.keep == 0 ? plan.iterations : std::min(config.checkpoint.keep, plan.iterations);
  constexpr uint64_t kBytesPerToken = 8;  // of a response in JSONL: id and text
  plan.assumed_length = std::max(1.0, static_cast<double>(config.rollout.max_response_tokens) / 4);
  plan.disk_bytes = (kept + 1 + config.checkpoint.keep_steps.size()) * plan.checkpoint_bytes +
                    static_cast<uint64_t>(plan.assumed_length) * kBytesPerToken *
                        (plan.consumed + config.curriculum.bank.responses);
  Path existing = std::filesystem::absolute(config.output);
  while (!std::filesystem::exists(existing)) existing = existing.parent_path();
  plan.free_disk_bytes = free_disk_bytes(existing);

  plan.flops = flops;
  const double tokens = plan.assumed_length * static_cast<double>(config.train.responses_per_iteration);
  // Sampling and scoring pass once through the student, the gradient three times; the teacher once. Ranks beyond
  // the shards have no part in the gradient.
  const double shared =
                   (needs_sampling(config) ? 2 : 1) * active_parameters(student) + active_parameters(teacher),
               gradient = 3 * active_parameters(student),
               learners = static_cast<double>(std::min<uint64_t>(elements(ranks), config.train.shards));
  plan.seconds_per_iteration =
      tokens * 2 * (shared / ranks + gradient / learners) / flops +
      static_cast<double>(plan.minibatches.size() * plan.step_bytes) / network_bytes(10);
  return plan;
}

void check_plan(const Plan& plan) {
  if (plan.memory_bytes > plan.available_bytes) {
    std::string help;
    std::vector<MemoryItem> items = plan.memory;
    std::stable_sort(items.begin(), items.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    for (const MemoryItem& item : items)
      if (!item.setting.empty() && (item.phase == plan.peak || item.phase == Phase::always)) {
        help = item.name + " take " + format_bytes(static_cast<double>(item.bytes)) + ": " + item.setting;
        break;
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
  text += fmt::format("student      {} parameters\nteacher      {} parameters\n",
                      format_count(static_cast<double>(plan.student_parameters)),
                      format_count(static_cast<double>(plan.teacher_parameters)));
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
  text += fmt::format("disk         {} (a checkpoint is {}); {} free\n",
                      format_bytes(static_cast<double>(plan.disk_bytes)),
                      format_bytes(static_cast<double>(plan.checkpoint_bytes)),
                      format_bytes(static_cast<double>(plan.free_disk_bytes)));
  text += fmt::format(
      "time         about {} an iteration, {} in all, if responses have {:.0f} tokens on average and "
      "products run at the "
      "{:.0f} GFLOP/s measured now\n",
      format_duration(plan.seconds_per_iteration),
      format_duration(plan.seconds_per_iteration * static_cast<double>(plan.iterations)), plan.assumed_length,
      plan.flops / 1e9);
  return text;
}

}  // namespace ropd::train
