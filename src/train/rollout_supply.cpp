#include "train/rollout_supply.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/rng.h"
#include "rollout/bank.h"
#include "rollout/fingerprint.h"

namespace ropd::train {
namespace {

constexpr double kGigabyte = 1e9;

io::RolloutLimits limits_for(const ModelPair& models) {
  return {.vocab_size = models.student->config().vocab_size, .eos_ids = models.eos_ids};
}

}  // namespace

RolloutSupply::RolloutSupply(const TrainConfig& config, const io::RunDirectory& directory,
                             const ModelPair& models, const QuerySet& queries)
    : config_(config), directory_(directory), models_(models), queries_(queries) {}

rollout::Engine& RolloutSupply::engine_with(const model::Weights& weights, uint64_t step) {
  if (engine_) {
    engine_->replace_weights(weights, step);
    return *engine_;
  }
  rollout::EngineConfig engine;
  engine.max_response_tokens = static_cast<int64_t>(config_.rollout.max_response_tokens);
  engine.eos_ids = models_.eos_ids;
  engine.sampling.temperature = config_.rollout.temperature;
  engine.sampling.top_p = config_.rollout.top_p;
  if (config_.rollout.memory_gb.value)
    engine.memory_bytes = static_cast<uint64_t>(*config_.rollout.memory_gb.value * kGigabyte);
  engine.with_logprobs = true;
  engine_ = std::make_unique<rollout::Engine>(weights, config_.rollout.precision, engine, step);
  return *engine_;
}

bool RolloutSupply::make_bank(const Path& path, const model::Weights& weights, uint64_t step,
                              const std::string& part, const std::string& model) {
  const uint64_t seed = derive_seed(config_.seed, part);
  const auto requests =
      take_requests(queries_, 0, config_.curriculum.bank.responses, seed, config_.data.grouped);
  rollout::BankOptions options;
  options.stage = part;
  if (models_.student_renderer)
    options.decode = [&](std::span<const Token> ids) {
      return models_.student_renderer->tokenizer().decode(ids);
    };
  return rollout::make_bank(
             engine_with(weights, step), requests, path,
             {.model = model, .fingerprint = rollout::weights_fingerprint(weights), .seed = seed}, options)
      .is_finished;
}

bool RolloutSupply::make_initial_bank() {
  if (std::filesystem::exists(directory_.initial_bank()))
    return true;  // whole; its origin is checked when it is read
  return make_bank(directory_.initial_bank(), model::map_weights(models_.student), 0, "initial bank",
                   config_.student);
}

bool RolloutSupply::freeze_recent_bank(const model::Weights& student, uint64_t step) {
  return make_bank(directory_.recent_bank(step), student, step, "recent bank " + std::to_string(step),
                   config_.student + " after " + std::to_string(step) + " steps");
}

SuppliedRollouts RolloutSupply::sample(uint64_t iteration, uint64_t count, const model::Weights& student,
                                       RunState& state) {
  const auto requests =
      take_requests(queries_, state.next_request, count, config_.seed, config_.data.grouped);
  const Path path = directory_.rollouts(iteration);
  rollout::BankOptions options;
  options.stage = "iteration " + std::to_string(iteration) + " rollouts";
  if (models_.student_renderer)
    options.decode = [&](std::span<const Token> ids) {
      return models_.student_renderer->tokenizer().decode(ids);
    };
  const std::string fingerprint = rollout::weights_fingerprint(student);
  const auto result =
      rollout::make_bank(engine_with(student, state.step), requests, path,
                         {.model = config_.student + " after " + std::to_string(state.step) + " steps",
                          .fingerprint = fingerprint,
                          .seed = config_.seed},
                         options);
  SuppliedRollouts supplied;
  supplied.is_complete = result.is_finished;
  supplied.sampling_seconds = result.run.seconds;
  supplied.sampled_tokens = result.run.num_tokens;
  if (!supplied.is_complete) return supplied;
  supplied.rollouts =
      rollout::read_bank(path, limits_for(models_), fingerprint, rollout::OriginCheck::refuse);
  for (const Rollout& rollout : supplied.rollouts)
    if (rollout.policy_step != state.step)
      fail(path.string(), ": query ", rollout.query_id, " was sampled by the student after ",
           rollout.policy_step, " steps, expected ", state.step, " (stale weights)");
  state.next_request += count;
  ++state.rounds;
  return supplied;
}

std::vector<Rollout> RolloutSupply::from_bank(const Source& source, uint64_t count, RunState& state) {
  const std::string name = source_name(source);
  const Path path = source.kind == SourceKind::initial  ? directory_.initial_bank()
                    : source.kind == SourceKind::recent ? directory_.recent_bank(source.step)
                                                        : Path(source.path);
  if (!banks_.contains(name)) {
    const bool is_foreign = source.kind == SourceKind::bank;
    // A bank from a file may come from any policy: that is its use. Its ids are checked; its origin is only
    // noted.
    banks_[name] = is_foreign ? io::read_rollouts(path, limits_for(models_))
                              : rollout::read_bank(
                                    path, limits_for(models_),
                                    source.kind == SourceKind::initial
                                        ? rollout::weights_fingerprint(model::map_weights(models_.student))
                                        : std::string(),
                                    source.kind == SourceKind::initial ? rollout::OriginCheck::refuse
                                                                       : rollout::OriginCheck::warn);
  }
  if (state.bank_positions.emplace(name, 0).second) ++state.rounds;
  const auto& bank = banks_[name];
  curriculum::BankCursor cursor(path.string(), bank.size(), state.bank_positions[name]);
  std::vector<Rollout> rollouts;
  for (const size_t row : cursor.take(count)) rollouts.push_back(bank[row]);
  state.bank_positions[name] = cursor.position();
  return rollouts;
}

SuppliedRollouts RolloutSupply::take(const Source& source, uint64_t iteration, const model::Weights& student,
                                     RunState& state) {
  const uint64_t count = config_.train.responses_per_iteration;
  SuppliedRollouts supplied;
  if (source.kind == SourceKind::current) {
    supplied = sample(iteration, count, student, state);
  } else if (source.kind == SourceKind::mix) {
    // Alternating, so that every minibatch of even size holds the same number from each.
    std::vector<std::vector<Rollout>> parts;
    for (const Source& part : source.of) {
      const uint64_t share = count / source.of.size();
      if (part.kind == SourceKind::current) {
        supplied = sample(iteration, share, student, state);
        if (!supplied.is_complete) return supplied;
        parts.push_back(std::move(supplied.rollouts));
      } else {
        parts.push_back(from_bank(part, share, state));
      }
    }
    supplied.rollouts.clear();
    for (size_t i = 0; i < parts[0].size(); ++i)
      for (uint32_t part = 0; part < parts.size(); ++part) {
        supplied.rollouts.push_back(std::move(parts[part][i]));
        supplied.source.push_back(part);
      }
  } else {
    supplied.rollouts = from_bank(source, count, state);
  }
  if (!supplied.is_complete) return supplied;
  if (supplied.source.empty()) supplied.source.assign(supplied.rollouts.size(), 0);
  state.consumed += supplied.rollouts.size();
  for (const Rollout& rollout : supplied.rollouts) state.queries.insert(rollout.query_id);
  return supplied;
}

}  // namespace ropd::train
