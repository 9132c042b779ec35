#include "train/adapter_section.h"

#include <fmt/format.h>

#include <algorithm>

namespace ropd::train {
namespace {

std::vector<std::pair<const char*, std::optional<uint64_t>>> list(const AdapterRanks& ranks) {
  return {{"q_proj", ranks.q_proj},      {"k_proj", ranks.k_proj},       {"v_proj", ranks.v_proj},
          {"o_proj", ranks.o_proj},      {"gate_proj", ranks.gate_proj}, {"up_proj", ranks.up_proj},
          {"down_proj", ranks.down_proj}};
}

}  // namespace

void AdapterSection::validate(const ConfigPlace& place) const {
  if (targets.empty()) place.refuse({"targets"}, " is empty: name projections, or all-linear");
  const bool takes_all = std::ranges::find(targets, AdapterTarget::all_linear) != targets.end();
  if (takes_all && targets.size() > 1)
    place.refuse({"targets"}, " names all-linear beside others: it means all of them");
  for (const auto& own : list(ranks))
    if (own.second && !takes_all &&
        std::ranges::none_of(targets, [&](AdapterTarget target) { return enum_text(target) == own.first; }))
      place.refuse({std::string("ranks.") + own.first}, " is given, but targets does not name ", own.first);
  AdapterSection only_path;
  only_path.path = path;
  if (path && config_to_yaml(*this) != config_to_yaml(only_path))
    place.refuse({"path"}, " names an adapter, whose rank, alpha and targets are its own: give no others");
}

AdapterConfig adapter_config(const AdapterSection& section) {
  AdapterConfig config{.rank = static_cast<int64_t>(section.rank),
                       .alpha = section.alpha,
                       .rslora = section.rslora,
                       .targets = {},
                       .ranks = {},
                       .alphas = {}};
  for (const AdapterTarget target : section.targets)
    if (target != AdapterTarget::all_linear) config.targets.emplace_back(enum_text(target));
  for (const auto& [name, rank] : list(section.ranks))
    if (rank) config.ranks[name] = static_cast<int64_t>(*rank);
  return config;
}

std::optional<std::string> adapter_rate_hint(double learning_rate, double of_full_training) {
  if (learning_rate > of_full_training) return std::nullopt;
  return fmt::format(
      "learning_rate {:g} is one of full training: adapters mostly learn with ten to a hundred times as much",
      learning_rate);
}

}  // namespace ropd::train
