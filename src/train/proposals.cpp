#include "train/proposals.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "base/progress.h"
#include "train/minibatch.h"

namespace ropd::train {
namespace {

constexpr uint64_t kAdapterRank = 16;
constexpr double kNothingKept = 0.001;  // GB

// What a setting changes besides memory and time.
enum class Fidelity { same_bits, sums_and_packing, parametrization };

struct Lever {
  std::string setting;
  Fidelity fidelity = Fidelity::same_bits;
  std::string cost;
  std::function<void(TrainConfig&, Trainable&)> apply;
};

std::string bytes_text(uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

// Those that this run has not pulled yet.
std::vector<Lever> levers_of(const TrainConfig& config, const PlannedModels& models,
                             const Trainable& trainable) {
  std::vector<Lever> levers;
  const auto add = [&](std::string setting, Fidelity fidelity, std::string cost, auto apply) {
    levers.push_back({std::move(setting), fidelity, std::move(cost), apply});
  };
  if (config.train.teacher_memory_gb.value)
    add("train.teacher_memory_gb=auto", Fidelity::same_bits, "same bits; streamed where it does not fit",
        [](TrainConfig& c, Trainable&) { c.train.teacher_memory_gb.value.reset(); });
  if (make_curriculum(config, models.steps_before).can_watch() && config.trigger.storage == Storage::memory)
    add("trigger.storage=file", Fidelity::same_bits,
        "same bits; " + bytes_text(8 * trainable.parameters) + " read and written an update while it watches",
        [](TrainConfig& c, Trainable&) { c.trigger.storage = Storage::file; });
  if (config.train.optimizer_storage == Storage::memory)
    add("train.optimizer_storage=file", Fidelity::same_bits,
        "same bits; " + bytes_text(16 * trainable.parameters) + " read and written an update",
        [](TrainConfig& c, Trainable&) { c.train.optimizer_storage = Storage::file; });
  if (config.rollout.memory_gb.value)
    add("rollout.memory_gb=auto", Fidelity::same_bits, "same bits; fewer responses sampled at a time",
        [](TrainConfig& c, Trainable&) { c.rollout.memory_gb.value.reset(); });
  if (activation_budget(config) > kNothingKept * 1e9)
    add(fmt::format("train.activation_memory_gb={}", kNothingKept), Fidelity::same_bits,
        "same bits; every layer is computed a second time",
        [](TrainConfig& c, Trainable&) { c.train.activation_memory_gb.value = kNothingKept; });
  if (config.train.shards > 1)
    add("train.shards=1", Fidelity::sums_and_packing,
        "other packing into microbatches and another order of sums than the paper's eight ranks",
        [](TrainConfig& c, Trainable&) { c.train.shards = 1; });
  const uint64_t longest =
      std::min<uint64_t>(config.data.max_prompt_tokens + config.rollout.max_response_tokens,
                         static_cast<uint64_t>(models.student.max_position_embeddings));
  if (config.train.microbatch_tokens > longest)
    add(fmt::format("train.microbatch_tokens={}", longest), Fidelity::sums_and_packing,
        "other packing into microbatches",
        [longest](TrainConfig& c, Trainable&) { c.train.microbatch_tokens = longest; });
  // A rank above a matrix's smaller side is none.
  const ModelConfig& student = models.student;
  const auto smallest = static_cast<uint64_t>(
      std::min({student.hidden_size, student.intermediate_size, student.num_kv_heads * student.head_dim}));
  if (!trainable.is_adapter && smallest >= kAdapterRank)
    add(fmt::format("adapter={{rank: {}}}", kAdapterRank), Fidelity::parametrization,
        "low-rank adapters are trained instead of all parameters", [&models](TrainConfig& c, Trainable& t) {
          c.adapter = AdapterSection{.rank = kAdapterRank};
          t = trainable_of(c, models);
        });
  return levers;
}

}  // namespace

std::optional<Proposal> propose(const TrainConfig& config, const Machine& machine) {
  const PlannedModels models = read_shapes(config);
  const Trainable trainable = trainable_of(config, models);
  Proposal best{{}, make_plan(config, machine, models, trainable)};
  if (best.fits()) return std::nullopt;
  const std::vector<Lever> levers = levers_of(config, models, trainable);
  using Cost = std::tuple<Fidelity, double, size_t>;
  std::optional<Cost> lowest;
  for (uint32_t chosen = 1; chosen < (1u << levers.size()); ++chosen) {
    TrainConfig changed = config;
    Trainable changed_trainable = trainable;
    Proposal proposal;
    Fidelity fidelity = Fidelity::same_bits;
    for (size_t i = 0; i < levers.size(); ++i) {
      if (!(chosen >> i & 1)) continue;
      levers[i].apply(changed, changed_trainable);
      fidelity = std::max(fidelity, levers[i].fidelity);
      proposal.settings.push_back({levers[i].setting, levers[i].cost});
    }
    proposal.plan = make_plan(changed, machine, models, changed_trainable);
    const Cost cost{fidelity, proposal.plan.seconds_per_iteration, proposal.settings.size()};
    const bool is_better = proposal.fits() ? !lowest || cost < *lowest
                                           : !lowest && proposal.plan.memory_bytes < best.plan.memory_bytes;
    if (!is_better) continue;
    if (proposal.fits()) lowest = cost;
    best = std::move(proposal);
  }
  return best;
}

std::string proposal_text(const Proposal& proposal) {
  std::string text =
      proposal.fits() ? fmt::format("fits with    {} of {} then, most in {}; set\n",
                                    bytes_text(proposal.plan.memory_bytes),
                                    bytes_text(proposal.plan.available_bytes), phase_name(proposal.plan.peak))
                      : fmt::format("fits not     {} at least, most in {}; the least is with\n",
                                    bytes_text(proposal.plan.memory_bytes), phase_name(proposal.plan.peak));
  size_t width = 0;
  for (const ProposedSetting& setting : proposal.settings) width = std::max(width, setting.setting.size());
  for (const auto& [setting, cost] : proposal.settings)
    text += fmt::format("  {:<{}}  {}\n", setting, width, cost);
  if (!proposal.fits())
    text += "  and shorter responses (rollout.max_response_tokens) or a smaller student\n";
  return text;
}

std::string proposal_sentence(const Proposal& proposal) {
  std::string settings;
  for (const ProposedSetting& setting : proposal.settings) {
    const bool needs_quotes = setting.setting.find(' ') != std::string::npos;
    settings +=
        (settings.empty() ? "" : " ") + (needs_quotes ? "'" + setting.setting + "'" : setting.setting);
  }
  if (settings.empty()) return "";
  return (proposal.fits() ? "it fits with " : "not even with ") + settings + ", which needs " +
         bytes_text(proposal.plan.memory_bytes) +
         (proposal.fits() ? "" : ": shorter responses, rollout.max_response_tokens, or a smaller student");
}

void check_fits(const TrainConfig& config, const Machine& machine) {
  const auto proposal = propose(config, machine);
  check_plan(make_plan(config, machine), proposal ? proposal_sentence(*proposal) : "");
}

}  // namespace ropd::train
