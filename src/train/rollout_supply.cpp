#include "train/rollout_supply.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/stopwatch.h"
#include "curriculum/bank_cursor.h"
#include "curriculum/mixture.h"
#include "rollout/streams.h"

namespace ropd::train {
namespace {

constexpr const char* kInitialBank = "initial bank";  // its draws come from this name too
constexpr rollout::Policy kInitial{.is_initial = true, .step = 0};

void check_policy(const Path& path, std::span<const Rollout> rollouts, uint64_t step) {
  for (const Rollout& rollout : rollouts)
    if (rollout.policy_step != step)
      fail(path.string(), ": query ", rollout.query_id, " was sampled by the student after ",
           rollout.policy_step, " steps, expected ", step, " (stale weights)");
}

}  // namespace

RolloutSupply::RolloutSupply(const TrainConfig& config, const io::RunDirectory& directory,
                             const QuerySet& queries, rollout::Generator& generator, Decode decode)
    : config_(config),
      directory_(directory),
      queries_(queries),
      generator_(generator),
      decode_(std::move(decode)) {}

rollout::BankOptions RolloutSupply::bank_options(const std::string& stage) const {
  rollout::BankOptions options;
  options.stage = stage;
  options.decode = decode_;
  return options;
}

io::RolloutLimits RolloutSupply::limits() const {
  return {.vocab_size = generator_.vocab_size(), .eos_ids = eos_ids()};
}

std::vector<rollout::Request> RolloutSupply::bank_requests(const std::string& part) const {
  const uint64_t responses = config_.curriculum.bank.responses;
  return take_requests(queries_, 0, responses, rollout::bank_stream(config_.seed, part, responses),
                       config_.data.grouped);
}

void RolloutSupply::replace_weights(const rollout::Policy& policy) {
  timed(packing_seconds_, [&] { generator_.replace_weights(policy); });
}

std::string RolloutSupply::model_name(const rollout::Policy& policy) const {
  return config_.student + (policy.is_initial ? "" : " after " + std::to_string(policy.step) + " steps");
}

bool RolloutSupply::make_bank(const Path& path, const rollout::Policy& policy, const std::string& part) {
  const auto requests = bank_requests(part);
  replace_weights(policy);
  return rollout::make_bank(generator_, requests, path,
                            {.model = model_name(policy), .fingerprint = generator_.fingerprint(policy)},
                            bank_options(part))
      .is_finished;
}

// A bank that is there was made by this run, perhaps before its first checkpoint: whatever it was made of
// must still be the same.
void RolloutSupply::check_initial_bank() const {
  const Path path = directory_.initial_bank();
  const auto found = io::read_bank_meta(path);
  if (!found) return;  // read_bank tells of it
  const auto expected = rollout::bank_meta(
      generator_.config(), generator_.precision(), kInitial.step, bank_requests(kInitialBank),
      {.model = model_name(kInitial), .fingerprint = generator_.fingerprint(kInitial)});
  const std::string difference = io::bank_difference(*found, expected);
  if (!difference.empty())
    fail(path.string(), ": was made in another way: ", difference,
         " (queries, student or settings changed since the run began); restore them, start a new run in "
         "another output, or remove ",
         path.string(), " to have it sampled again");
}

bool RolloutSupply::make_initial_bank() {
  if (!std::filesystem::exists(directory_.initial_bank()))
    return make_bank(directory_.initial_bank(), kInitial, kInitialBank);
  if (std::exchange(is_initial_bank_checked_, true)) return true;
  check_initial_bank();
  // A kill may have come between the bank and this.
  std::filesystem::remove(io::bank_partial_path(directory_.initial_bank()));
  return true;
}

bool RolloutSupply::freeze_recent_bank(uint64_t step) {
  const rollout::Policy policy{.is_initial = false, .step = step};
  state_.bank_fingerprints[source_name({.kind = SourceKind::recent, .step = step})] =
      generator_.fingerprint(policy);
  return make_bank(directory_.recent_bank(step), policy, "recent bank " + std::to_string(step));
}

SuppliedRollouts RolloutSupply::sample(uint64_t iteration, uint64_t step, uint64_t count,
                                       SupplyState& state) {
  const auto requests = take_requests(queries_, state.next_request, count,
                                      rollout::training_stream(config_.seed, step), config_.data.grouped);
  const Path path = directory_.rollouts(iteration);
  const rollout::Policy policy{.is_initial = false, .step = step};
  const std::string fingerprint = generator_.fingerprint(policy);
  auto options = bank_options("iteration " + std::to_string(iteration) + " rollouts");
  std::vector<Scores> scores(requests.size());
  const bool has_scores =
      generator_.is_exact(config_.train.precision) && config_.train.rescore == Rescore::iteration;
  if (has_scores) {
    options.scores_top_k = config_.objective.top_k;
    options.on_scores = [&](size_t request, Scores&& of_response) {
      scores[request] = std::move(of_response);
    };
  }
  replace_weights(policy);
  const auto result = rollout::make_bank(generator_, requests, path,
                                         {.model = model_name(policy), .fingerprint = fingerprint}, options);
  SuppliedRollouts supplied;
  supplied.is_complete = result.is_finished;
  supplied.sampling_seconds = result.run.seconds;
  supplied.sampled_tokens = result.run.num_tokens;
  if (!supplied.is_complete) return supplied;
  supplied.rollouts = rollout::read_bank(path, limits(), fingerprint);
  check_policy(path, supplied.rollouts, step);
  if (has_scores && result.num_kept == 0) supplied.scores = std::move(scores);
  state.next_request += count;
  ++state.rounds;
  return supplied;
}

std::vector<Rollout> RolloutSupply::read_bank(const Source& source, const Path& path) const {
  if (source.kind == SourceKind::initial)
    return rollout::read_bank(path, limits(), generator_.fingerprint(kInitial));
  // A bank from a file may come from any policy: that is its use. Only its ids are checked.
  if (source.kind == SourceKind::bank) return io::read_rollouts(path, limits());
  // Runs of earlier versions did not keep the fingerprint of what they froze.
  const auto frozen = state_.bank_fingerprints.find(source_name(source));
  auto rollouts = frozen == state_.bank_fingerprints.end()
                      ? io::read_rollouts(path, limits())
                      : rollout::read_bank(path, limits(), frozen->second);
  check_policy(path, rollouts, source.step);
  return rollouts;
}

// Under which name the position in a bank is kept: not by a file's path, which may be another one when a run
// goes on from another directory, but by its place among the files that the stages name.
std::string RolloutSupply::bank_key(const Source& source, SupplyState& state) const {
  if (source.kind != SourceKind::bank) return source_name(source);
  std::vector<std::string> paths;
  CurriculumConfig curriculum = config_.curriculum;
  visit_bank_paths(curriculum, [&](const std::string& path) { paths.push_back(path); });
  std::set<std::string> before;
  for (const std::string& path : paths) {
    before.insert(path);
    if (path == source.path) break;
  }
  const std::string key = "bank " + std::to_string(before.size());
  // Earlier versions kept it by the path.
  if (auto old = state.bank_positions.extract(source_name(source))) {
    old.key() = key;
    state.bank_positions.insert(std::move(old));
  }
  return key;
}

std::vector<Rollout> RolloutSupply::from_bank(const Source& source, uint64_t count, SupplyState& state) {
  const std::string name = source_name(source), key = bank_key(source, state);
  const Path path = source.kind == SourceKind::initial  ? directory_.initial_bank()
                    : source.kind == SourceKind::recent ? directory_.recent_bank(source.step)
                                                        : Path(source.path);
  if (!banks_.contains(name)) banks_[name] = read_bank(source, path);
  if (state.bank_positions.emplace(key, 0).second) ++state.rounds;
  const auto& bank = banks_[name];
  curriculum::BankCursor cursor(path.string(), bank.size(), state.bank_positions[key]);
  std::vector<Rollout> rollouts;
  for (const size_t row : cursor.take(count)) rollouts.push_back(bank[row]);
  state.bank_positions[key] = cursor.position();
  return rollouts;
}

// Each part gives its responses in its own order; a part without a place is not drawn on at all.
SuppliedRollouts RolloutSupply::mix(const Source& source, uint64_t iteration, uint64_t step,
                                    SupplyState& state) {
  const size_t num_parts = source.of.size();
  const auto places = curriculum::interleave(source.ratio, num_parts, config_.train.responses_per_iteration);
  SuppliedRollouts mixed;
  std::vector<std::vector<Rollout>> parts(num_parts);
  for (size_t p = 0; p < num_parts; ++p) {
    const uint64_t count = static_cast<uint64_t>(std::count(places.begin(), places.end(), p));
    if (count == 0) continue;
    if (source.of[p].kind != SourceKind::current) {
      parts[p] = from_bank(source.of[p], count, state);
      continue;
    }
    mixed = sample(iteration, step, count, state);
    if (!mixed.is_complete) return mixed;
    parts[p] = std::exchange(mixed.rollouts, {});
    mixed.scores.clear();
  }
  std::vector<size_t> next(num_parts, 0);
  for (const uint32_t part : places) {
    mixed.rollouts.push_back(std::move(parts[part][next[part]++]));
    mixed.source.push_back(part);
  }
  return mixed;
}

SuppliedRollouts RolloutSupply::take(const Source& source, uint64_t iteration, uint64_t step) {
  const uint64_t count = config_.train.responses_per_iteration;
  SupplyState after = state_;
  SuppliedRollouts supplied;
  if (source.kind == SourceKind::current)
    supplied = sample(iteration, step, count, after);
  else if (source.kind == SourceKind::mix)
    supplied = mix(source, iteration, step, after);
  else
    supplied.rollouts = from_bank(source, count, after);
  generator_.release();
  if (!supplied.is_complete) return supplied;
  supplied.packing_seconds = std::exchange(packing_seconds_, 0);
  if (supplied.source.empty()) supplied.source.assign(supplied.rollouts.size(), 0);
  after.consumed += supplied.rollouts.size();
  for (const Rollout& rollout : supplied.rollouts) after.queries.insert(rollout.query_id);
  state_ = std::move(after);
  return supplied;
}

}  // namespace ropd::train
