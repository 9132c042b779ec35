// The settings of a low-rank adapter, which `ropd train` and `ropd sft` share.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config_fields.h"
#include "records/adapter_config.h"

namespace ropd::train {

enum class AdapterTarget { all_linear, q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj };
constexpr auto enum_names(AdapterTarget) {
  using enum AdapterTarget;
  return std::array{EnumName{all_linear, "all-linear"}, EnumName{q_proj, "q_proj"},
                    EnumName{k_proj, "k_proj"},         EnumName{v_proj, "v_proj"},
                    EnumName{o_proj, "o_proj"},         EnumName{gate_proj, "gate_proj"},
                    EnumName{up_proj, "up_proj"},       EnumName{down_proj, "down_proj"}};
}

struct AdapterRanks {
  std::optional<uint64_t> q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj;
  void fields(auto&& field) {
    field("q_proj", q_proj, "rank there", at_least(1));
    field("k_proj", k_proj, "rank there", at_least(1));
    field("v_proj", v_proj, "rank there", at_least(1));
    field("o_proj", o_proj, "rank there", at_least(1));
    field("gate_proj", gate_proj, "rank there", at_least(1));
    field("up_proj", up_proj, "rank there", at_least(1));
    field("down_proj", down_proj, "rank there", at_least(1));
  }
};

struct AdapterSection {
  uint64_t rank = 16;
  double alpha = 32;
  std::vector<AdapterTarget> targets = {AdapterTarget::all_linear};
  bool rslora = false;
  AdapterRanks ranks;
  std::optional<std::string> path;
  void fields(auto&& field) {
    field("rank", rank, "r of the change alpha / r * B A of every matrix", between(1, 1 << 20));
    field("alpha", alpha, "its size: alpha / rank", above(0));
    field("targets", targets, "projections that are adapted; all-linear: all of them, no embedding, no head");
    field("rslora", rslora, "rank-stabilised: alpha / sqrt(rank)");
    field("ranks", ranks, "of single targets, instead of rank");
    field("path", path, "a PEFT adapter of the student to start from; the other keys are then its own");
  }
  void validate(const ConfigPlace& place = {}) const;
};

AdapterConfig adapter_config(const AdapterSection& section);

// Why a learning rate is probably not meant for an adapter; nothing when it is above `of_full_training`.
std::optional<std::string> adapter_rate_hint(double learning_rate, double of_full_training);

}  // namespace ropd::train
