#include "train/rollout_supply.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/rng.h"
#include "rollout/fingerprint.h"

namespace ropd::train {
namespace {

constexpr double kGigabyte = 1e9;
constexpr const char* kInitialBank = "initial bank";  // its seed comes from this name too

io::RolloutLimits limits_for(const ModelPair& models) {
  return {.vocab_size = models.student->config().vocab_size, .eos_ids = models.eos_ids};
}

}  // namespace

RolloutSupply::RolloutSupply(const TrainConfig& config, const io::RunDirectory& directory,
                             const ModelPair& models, const QuerySet& queries, bool releases_engine)
    : config_(config),
      directory_(directory),
      models_(models),
      queries_(queries),
      releases_engine_(releases_engine) {}

rollout::EngineConfig RolloutSupply::engine_config() const {
  rollout::EngineConfig engine;
  engine.max_response_tokens = static_cast<int64_t>(config_.rollout.max_response_tokens);
  engine.eos_ids = models_.eos_ids;
  engine.sampling.temperature = config_.rollout.temperature;
  engine.sampling.top_p = config_.rollout.top_p;
  if (config_.rollout.memory_gb.value)
    engine.memory_bytes = static_cast<uint64_t>(*config_.rollout.memory_gb.value * kGigabyte);
  engine.with_logprobs = true;
  return engine;
}

rollout::BankOptions RolloutSupply::bank_options(const std::string& stage) const {
  rollout::BankOptions options;
  options.stage = stage;
  if (models_.student_renderer)
    options.decode = [this](std::span<const Token> ids) {
      return models_.student_renderer->tokenizer().decode(ids);
    };
  return options;
}

rollout::Engine& RolloutSupply::engine_with(const model::Weights& weights, uint64_t step) {
  const auto begin = std::chrono::steady_clock::now();
  if (releases_engine_) engine_.reset();  // so that old and new weights are never both there
  if (engine_)
    engine_->replace_weights(weights, step);
  else
    engine_ = std::make_unique<rollout::Engine>(weights, config_.rollout.precision, engine_config(), step);
  packing_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return *engine_;
}

bool RolloutSupply::make_bank(const Path& path, const model::Weights& weights, uint64_t step,
                              const std::string& part, const std::string& model) {
  const uint64_t seed = derive_seed(config_.seed, part);
  const auto requests =
      take_requests(queries_, 0, config_.curriculum.bank.responses, seed, config_.data.grouped);
  return rollout::make_bank(
             engine_with(weights, step), requests, path,
             {.model = model, .fingerprint = rollout::weights_fingerprint(weights), .seed = seed},
             bank_options(part))
      .is_finished;
}

// A bank that is there was made by this run, perhaps before its first checkpoint: whatever it was made of
// must still be the same.
void RolloutSupply::check_initial_bank() const {
  const Path path = directory_.initial_bank();
  const auto found = io::read_bank_meta(path);
  if (!found) return;  // read_bank tells of it
  const uint64_t seed = derive_seed(config_.seed, kInitialBank);
  const auto requests =
      take_requests(queries_, 0, config_.curriculum.bank.responses, seed, config_.data.grouped);
  const auto expected =
      rollout::bank_meta(engine_config(), config_.rollout.precision, /*policy_step=*/0, requests,
                         {.model = config_.student,
                          .fingerprint = rollout::weights_fingerprint(model::map_weights(models_.student)),
                          .seed = seed});
  const std::string difference = io::bank_difference(*found, expected);
  if (!difference.empty())
    fail(path.string(), ": was made in another way: ", difference,
         " (queries, student or settings changed since the run began); restore them, start a new run in "
         "another output, or remove ",
         path.string(), " to have it sampled again");
}

bool RolloutSupply::make_initial_bank() {
  if (!std::filesystem::exists(directory_.initial_bank()))
    return make_bank(directory_.initial_bank(), model::map_weights(models_.student), 0, kInitialBank,
                     config_.student);
  if (!is_initial_bank_checked_) check_initial_bank();
  is_initial_bank_checked_ = true;
  return true;
}

bool RolloutSupply::freeze_recent_bank(const model::Weights& student, uint64_t step) {
  return make_bank(directory_.recent_bank(step), student, step, "recent bank " + std::to_string(step),
                   config_.student + " after " + std::to_string(step) + " steps");
}

bool RolloutSupply::scores_while_sampling() const {
  return config_.rollout.precision == config_.train.precision && config_.train.rescore == Rescore::iteration;
}

SuppliedRollouts RolloutSupply::sample(uint64_t iteration, uint64_t count, const model::Weights& student,
                                       RunState& state) {
  const auto requests =
      take_requests(queries_, state.next_request, count, config_.seed, config_.data.grouped);
  const Path path = directory_.rollouts(iteration);
  const std::string fingerprint = rollout::weights_fingerprint(student);
  auto options = bank_options("iteration " + std::to_string(iteration) + " rollouts");
  std::optional<distill::SamplingScores> scores;
  if (scores_while_sampling()) {
    scores.emplace(requests.size(), config_.objective.top_k);
    options.on_row = [&](size_t request, Token token, std::span<const float> logits) {
      scores->add(request, token, logits);
    };
  }
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
  if (scores && result.num_kept == 0)
    for (size_t i = 0; i < supplied.rollouts.size(); ++i) {
      supplied.scores.push_back(scores->take(i));
      supplied.scores.back().query_id = supplied.rollouts[i].query_id;
      supplied.scores.back().sample = supplied.rollouts[i].sample;
    }
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
    supplied.scores.clear();
    for (size_t i = 0; i < parts[0].size(); ++i)
      for (uint32_t part = 0; part < parts.size(); ++part) {
        supplied.rollouts.push_back(std::move(parts[part][i]));
        supplied.source.push_back(part);
      }
  } else {
    supplied.rollouts = from_bank(source, count, state);
  }
  if (releases_engine_) engine_.reset();
  if (!supplied.is_complete) return supplied;
  supplied.packing_seconds = std::exchange(packing_seconds_, 0);
  if (supplied.source.empty()) supplied.source.assign(supplied.rollouts.size(), 0);
  state.consumed += supplied.rollouts.size();
  for (const Rollout& rollout : supplied.rollouts) state.queries.insert(rollout.query_id);
  return supplied;
}

}  // namespace ropd::train
