#include "distill/gradient.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>

#include "base/memory_info.h"
#include "base/parallel.h"
#include "distill/scoring.h"

namespace ropd::distill {
namespace {

using model::Gradients;
using model::Sharing;
using model::TrainingPass;
using model::Weights;

int64_t length_of(const TrainingItem& item) {
  return static_cast<int64_t>(item.rollout->prompt_ids.size() + item.rollout->response_ids.size());
}

// How much is done of the shards that come one after the other, by the tokens that are through. Threads that take
// shards of their own tell nothing: their models are small.
class ShardProgress {
 public:
  ShardProgress() = default;
  ShardProgress(std::function<void(double share)> listener, std::span<const Shard> minibatch,
                std::span<const size_t> own)
      : listener_(std::move(listener)) {
    for (const size_t s : own)
      for (const Microbatch& microbatch : minibatch[s]) total_ += tokens_of(microbatch);
  }
  // `share` of these is done, and all before them.
  void tell(std::span<const TrainingItem> items, double share) const {
    if (listener_) listener_((done_ + share * tokens_of(items)) / total_);
  }
  void add(std::span<const TrainingItem> items) { done_ += tokens_of(items); }

 private:
  const std::function<void(double share)> listener_;
  double total_ = 0, done_ = 0;
  static double tokens_of(std::span<const TrainingItem> items) {
    double tokens = 0;
    for (const TrainingItem& item : items) tokens += static_cast<double>(length_of(item));
    return tokens;
  }
};

// A response position among the rows of a part.
struct RowOrigin {
  const TrainingItem* item;
  size_t position;
  bool is_valid() const { return item->supervision->is_valid[position] != 0; }
};

Position position_of(const RowOrigin& origin, bool old_is_current) {
  const Supervision& s = *origin.item->supervision;
  const size_t k = s.num_candidates, at = origin.position * k;
  return {std::span(s.ids).subspan(at, k),
          std::span(s.old_logprobs).subspan(at, k),
          std::span(s.coefficients).subspan(at, k),
          std::span(s.teacher_logprobs).subspan(at, k),
          origin.is_valid() ? origin.item->token_weight : 0.0f,
          old_is_current};
}

// Items side by side without padding, and the rows of their response positions.
struct PackedPart {
  model::PackedBatch batch;
  std::vector<int64_t> rows;       // of the batch, ascending
  std::vector<RowOrigin> origins;  // [rows]
};
PackedPart pack_part(std::span<const TrainingItem> items) {
  std::vector<model::PromptedResponse> responses;
  for (const TrainingItem& item : items)
    responses.push_back({item.rollout->prompt_ids, item.rollout->response_ids});
  auto [batch, first_rows] = model::pack_responses(responses, model::Prompts::each_its_own);
  PackedPart part{std::move(batch), {}, {}};
  for (size_t i = 0; i < items.size(); ++i)
    for (size_t t = 0; t < items[i].rollout->response_ids.size(); ++t) {
      part.rows.push_back(first_rows[i] + static_cast<int64_t>(t));
      part.origins.push_back({&items[i], t});
    }
  return part;
}

void add_results(GradientSums& sums, std::span<const RowOrigin> origins,
                 std::span<const PositionResult> results) {
  for (size_t r = 0; r < origins.size(); ++r)
    if (origins[r].is_valid())
      sums += {.weighted_loss = origins[r].item->token_weight * results[r].loss,
               .tokens = 1,
               .clipped = results[r].clipped,
               .dual_clipped = results[r].dual_clipped,
               .clamped = results[r].clamped,
               .terms = results[r].terms,
               .policy_kl = results[r].policy_kl};
}

// Forward, objective at every response position, backward. Adds to `gradients` and `sums`. `teacher`: the rows
// of these items, where the objective needs them.
void add_part(Gradients& gradients, GradientSums& sums, TrainingPass& pass, const Weights& student,
              std::span<const TrainingItem> items, const kernels::HeadInput& teacher,
              const GradientConfig& config, const ShardProgress& progress) {
  auto part = pack_part(items);
  const auto& origins = part.origins;
  // A layer's gradient takes two products for each of its own.
  const double all = 3 * static_cast<double>(student.layers.size());
  const auto on_forward = [&](size_t layers) {
    if (layers > 0) progress.tell(items, static_cast<double>(layers) / all);  // none is what was told last
  };
  const auto on_backward = [&](size_t layers) {
    progress.tell(items, static_cast<double>(student.layers.size() + 2 * layers) / all);
  };
  const auto states = pass.forward(student, std::move(part.batch), std::move(part.rows), on_forward);

  Buffer grad_states(states.size());
  grad_states.fill(0);
  std::vector<PositionResult> results(origins.size());
  const kernels::HeadInput head{states, student.head.stored, config.precision};
  if (config.objective.needs_full_teacher())
    kernels::vocab_head_pairs(
        grad_states, gradients.head(), head, teacher, pass.row_begins(),
        kernels::vocab_scratch_bytes(config.precision),
        [&](int64_t row, std::span<float> student_logits, std::span<float> teacher_logits) {
          const auto r = static_cast<size_t>(row);
          results[r] =
              full_position_gradient(student_logits, teacher_logits,
                                     position_of(origins[r], config.old_is_current), config.objective);
        });
  else
    kernels::vocab_head_grad(
        grad_states, gradients.head(), head.hidden, head.head, head.precision, pass.row_begins(),
        kernels::vocab_scratch_bytes(config.precision), [&](int64_t row, std::span<float> logits) {
          const auto r = static_cast<size_t>(row);
          results[r] =
              position_gradient(logits, position_of(origins[r], config.old_is_current), config.objective);
        });

  pass.backward(gradients, grad_states, on_backward);
  add_results(sums, origins, results);
}

// What every shard of a minibatch is computed with.
struct ShardSettings {
  const Weights& student;
  const GradientConfig& config;
  const TeacherRowsSource& teacher;
  int64_t part_tokens;  // a microbatch goes through the model in parts of so many at most
  size_t trace_budget_bytes;
};

std::vector<size_t> all_of(std::span<const Shard> shards) {
  std::vector<size_t> all(shards.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// One chain from zero over the microbatches.
GradientSums shard_gradient(Gradients& gradients, std::unique_ptr<TrainingPass>& pass, const Shard& shard,
                            const ShardSettings& settings, ShardProgress& progress) {
  const auto& [student, config, teacher, part_tokens, trace_budget_bytes] = settings;
  GradientSums sums;
  gradients.clear();
  for (const Microbatch& microbatch : shard) {
    const TeacherRows rows = teacher ? teacher(microbatch) : TeacherRows{};
    std::span<const float> states = rows.states;  // of the parts to come
    if (!pass) pass = std::make_unique<TrainingPass>(config.precision, trace_budget_bytes);
    for (const auto& [begin, end] : model::pack_in_order(
             microbatch.size(), part_tokens, [&](size_t i) { return length_of(microbatch[i]); })) {
      const auto items = std::span(microbatch).subspan(begin, end - begin);
      size_t part_states = 0;
      for (const TrainingItem& item : items)
        part_states += item.rollout->response_ids.size() * static_cast<size_t>(rows.head.columns);
      add_part(gradients, sums, *pass, student, items, {states.first(part_states), rows.head, rows.precision},
               config, progress);
      progress.add(items);
      states = states.subspan(part_states);
    }
    pass->finish(gradients);
  }
  return sums;
}

std::vector<size_t> longest_first(std::span<const Shard> shards) {
  std::vector<int64_t> tokens(shards.size(), 0);
  for (size_t s = 0; s < shards.size(); ++s)
    for (const Microbatch& microbatch : shards[s])
      for (const TrainingItem& item : microbatch) tokens[s] += length_of(item);
  std::vector<size_t> order(shards.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tokens[a] > tokens[b]; });
  return order;
}

// One shard alone is shared by its products, whatever the model.
bool threads_take_shards(const model::Execution& student, uint64_t num_shards) {
  return student.sharing == Sharing::sequences && num_shards > 1;
}

}  // namespace

GradientSums& GradientSums::operator+=(const GradientSums& other) {
  weighted_loss += other.weighted_loss;
  tokens += other.tokens;
  clipped += other.clipped;
  dual_clipped += other.dual_clipped;
  clamped += other.clamped;
  terms += other.terms;
  policy_kl += other.policy_kl;
  return *this;
}

TeacherRows teacher_rows(const Weights& teacher, std::span<const TrainingItem> items,
                         kernels::Precision precision, model::Workspace& workspace) {
  std::vector<model::PromptedResponse> responses;
  for (const TrainingItem& item : items)
    responses.push_back({item.rollout->prompt_ids, item.rollout->response_ids});
  return {predicting_states(teacher, responses, precision, workspace), teacher.head.stored, precision};
}

uint64_t num_shard_gradients(const model::Execution& student, uint64_t num_shards) {
  return threads_take_shards(student, num_shards) ? num_shards - 1 : std::min<uint64_t>(num_shards - 1, 1);
}

namespace {

// Asked by one thread at a time; empty where the objective needs none.
TeacherRowsSource one_at_a_time(const TeacherRowsSource& teacher, const GradientConfig& config,
                                std::mutex& asking) {
  if (!config.objective.needs_full_teacher()) return {};
  return [&](std::span<const TrainingItem> microbatch) {
    const std::lock_guard lock(asking);
    return teacher(microbatch);
  };
}

void give_back(GradientMemory& memory) {
  memory = {};
  return_freed_memory();
}

void provide_passes(GradientMemory& memory, size_t count) {
  if (memory.passes.size() < count) memory.passes.resize(count);
}

std::span<Gradients> provide_gradients(GradientMemory& memory, const MakeGradients& make, size_t count) {
  while (memory.shards.size() < count) memory.shards.push_back(make());
  return std::span(memory.shards).first(count);
}

// The shards `own`, taken by threads, into the places of the same index.
std::vector<GradientSums> gradients_by_threads(std::span<Gradients* const> places, GradientMemory& memory,
                                               const Weights& student, std::span<const Shard> minibatch,
                                               std::span<const size_t> own, const GradientConfig& config,
                                               const TeacherRowsSource& rows) {
  const size_t threads = std::max<size_t>(num_workers(own.size()), 1);
  provide_passes(memory, threads);
  // Weights change between minibatches; packed once, every part of every shard has them ready.
  const Weights packed = model::pack_weights(student, config.precision, /*with_gradient=*/true);
  const ShardSettings settings{packed, config, rows, model::kPartTokens, config.trace_budget_bytes / threads};
  std::vector<Shard> shards;
  for (const size_t s : own) shards.push_back(minibatch[s]);
  const std::vector<size_t> order = longest_first(shards);
  std::vector<GradientSums> sums(own.size());
  parallel_tasks(own.size(), [&](size_t task, size_t thread) {
    const size_t i = order[task];
    ShardProgress untold;
    sums[i] = shard_gradient(*places[i], memory.passes[thread], shards[i], settings, untold);
  });
  return sums;
}

}  // namespace

GradientSums minibatch_gradient(Gradients& gradients, GradientMemory& memory, const Weights& student,
                                std::span<const Shard> shards, const GradientConfig& config,
                                const TeacherRowsSource& teacher) {
  assert(!shards.empty());
  const auto others = provide_gradients(
      memory, [&] { return gradients.like_this(); }, num_shard_gradients(student.execution, shards.size()));
  std::mutex asking;
  const TeacherRowsSource rows = one_at_a_time(teacher, config, asking);
  GradientSums sums;
  if (threads_take_shards(student.execution, shards.size())) {
    std::vector<Gradients*> places = {&gradients};
    for (Gradients& other : others) places.push_back(&other);
    for (const GradientSums& part :
         gradients_by_threads(places, memory, student, shards, all_of(shards), config, rows))
      sums += part;
    model::add_in_order(gradients, others);
  } else {
    provide_passes(memory, 1);
    const ShardSettings settings{student, config, rows, std::numeric_limits<int64_t>::max(),
                                 config.trace_budget_bytes};
    ShardProgress progress(config.progress, shards, all_of(shards));
    for (size_t s = 0; s < shards.size(); ++s) {
      sums += shard_gradient(s == 0 ? gradients : others[0], memory.passes[0], shards[s], settings, progress);
      if (s > 0) model::add_in_order(gradients, others);
    }
  }
  if (!student.execution.keeps_memory) give_back(memory);
  return sums;
}

void shard_gradients(GradientMemory& memory, const MakeGradients& make, const Weights& student,
                     std::span<const Shard> minibatch, std::span<const size_t> own,
                     const GradientConfig& config, const TeacherRowsSource& teacher, const TakeShard& take) {
  std::mutex asking;
  const TeacherRowsSource rows = one_at_a_time(teacher, config, asking);
  if (threads_take_shards(student.execution, minibatch.size())) {
    const auto held = provide_gradients(memory, make, own.size());
    std::vector<Gradients*> places;
    for (Gradients& place : held) places.push_back(&place);
    const auto sums = gradients_by_threads(places, memory, student, minibatch, own, config, rows);
    for (size_t i = 0; i < own.size(); ++i) take(own[i], held[i].values(), sums[i]);
  } else {
    const auto held = provide_gradients(memory, make, 1);
    provide_passes(memory, 1);
    const ShardSettings settings{student, config, rows, std::numeric_limits<int64_t>::max(),
                                 config.trace_budget_bytes};
    ShardProgress progress(config.progress, minibatch, own);
    for (const size_t s : own) {
      const GradientSums sums = shard_gradient(held[0], memory.passes[0], minibatch[s], settings, progress);
      take(s, held[0].values(), sums);
    }
  }
  if (!student.execution.keeps_memory) give_back(memory);
}

}  // namespace ropd::distill
