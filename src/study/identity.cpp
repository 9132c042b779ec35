#include "study/identity.h"

#include <algorithm>

#include "base/file.h"
#include "curriculum/stages.h"
#include "kernels/instruction_sets.h"

namespace ropd::study {
namespace {

bool is_below(std::string_view key, std::string_view section) {
  return key == section || (key.starts_with(section) && key[section.size()] == '.');
}

bool is_neutral(std::string_view key) {
  const auto& keys = neutral_keys();
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view section) { return is_below(key, section); });
}

// By content, or decided by the sources of the iterations.
bool is_said_otherwise(std::string_view key) {
  for (const char* name : {"student", "teacher", "student_base", "teacher_base", "data.queries",
                           "continue_from", "curriculum", "trigger", "train.iterations", "adapter.path"})
    if (is_below(key, name)) return true;
  return false;
}

void list_settings(const ConfigNode& node, const std::string& prefix, std::vector<std::string>& out) {
  for (const ConfigNode& child : node.items) {
    const std::string key = prefix + child.name;
    if (is_neutral(key) || is_said_otherwise(key)) continue;
    if (key == "adapter" && child.kind == ConfigNode::Kind::null)
      continue;  // states from before there were any
    if (child.kind == ConfigNode::Kind::map)
      list_settings(child, key + ".", out);
    else
      out.push_back(key + "=" + write_value(child));
  }
}

bool uses_bf16(const train::TrainConfig& config) {
  return is_bf16(config.rollout.precision) || is_bf16(config.train.precision) ||
         is_bf16(config.train.teacher_precision);
}

bool uses_bank(const Source& source, SourceKind kind) {
  return source.kind == kind || std::any_of(source.of.begin(), source.of.end(),
                                            [&](const Source& part) { return uses_bank(part, kind); });
}

}  // namespace

std::string identity_of(const std::vector<std::string>& parts) {
  std::string bytes;
  for (const std::string& part : parts) bytes += std::to_string(part.size()) + ":" + part;
  return sha256(bytes).substr(0, 24);
}

std::string arithmetic_version(const train::TrainConfig& config) {
  std::string version = ROPD_ARITHMETIC;
  if (uses_bf16(config)) {
    kernels::choose_instruction_set();
    version += std::string(" ") +
               hwy::TargetName(static_cast<int64_t>(hwy::SupportedTargets() & -hwy::SupportedTargets()));
  }
  return version;
}

const std::vector<std::string_view>& neutral_keys() {
  static const std::vector<std::string_view> keys = {"output",
                                                     "rollout.memory_gb",
                                                     "train.activation_memory_gb",
                                                     "train.teacher_memory_gb",
                                                     "train.optimizer_storage",
                                                     "train.max_skipped_steps",
                                                     "train.teacher_ranks",
                                                     "checkpoint",
                                                     "eval",
                                                     "alarms",
                                                     "metrics"};
  return keys;
}

std::vector<std::string> influential_settings(const train::TrainConfig& config) {
  std::vector<std::string> settings;
  list_settings(config_detail::to_node(config), "", settings);
  // Not of the training, but evaluations read what checkpoints hold; unsaid, the student's files decide.
  if (const auto dtype = config.checkpoint.dtype.value)
    settings.push_back("checkpoint.dtype=" + std::string(dtype_name(*dtype)));
  return settings;
}

std::string initial_state(const train::TrainConfig& config, const Inputs& inputs) {
  std::vector<std::string> parts = {"state 0", arithmetic_version(config), inputs.student, inputs.teacher,
                                    inputs.queries};
  const auto settings = influential_settings(config);
  parts.insert(parts.end(), settings.begin(), settings.end());
  return identity_of(parts);
}

std::string continued_state(const train::TrainConfig& config, const Inputs& inputs, const std::string& from) {
  return identity_of({"continuation", initial_state(config, inputs), from});
}

std::string next_state(const std::string& before, const Source& source, const train::TrainConfig& config,
                       const Inputs& inputs) {
  std::vector<std::string> parts = {before, source_name(source)};
  if (uses_bank(source, SourceKind::initial) || uses_bank(source, SourceKind::recent))
    parts.back() += " of " + std::to_string(config.curriculum.bank.responses);
  const auto add_content = [&](const Source& plain) {
    if (const auto found = inputs.banks.find(plain.path); found != inputs.banks.end())
      parts.push_back(found->second);
  };
  add_content(source);
  for (const Source& part : source.of) add_content(part);
  return identity_of(parts);
}

std::string initial_bank_identity(const train::TrainConfig& config, const Inputs& inputs) {
  std::vector<std::string> parts = {"initial bank", arithmetic_version(config), inputs.student,
                                    inputs.queries, std::to_string(config.curriculum.bank.responses)};
  for (const std::string& setting : influential_settings(config))
    if (setting.starts_with("data.") || setting.starts_with("rollout.") || setting.starts_with("seed="))
      parts.push_back(setting);
  return identity_of(parts);
}

KnownSources known_sources(const train::TrainConfig& config, std::optional<uint64_t> tau) {
  const uint64_t total = config.train.iterations;
  KnownSources known;
  known.is_complete = true;
  for (const curriculum::Stage& stage : train::make_stages(config)) {
    const uint64_t begin = known.sources.size();
    uint64_t end = total;
    if (stage.iterations) end = std::min(total, begin + *stage.iterations);
    if (stage.until_trigger && tau) end = std::min(total, *tau);
    const uint64_t length = stage.iterations.value_or(total - begin);
    for (uint64_t k = begin; k < end; ++k)
      known.sources.push_back(curriculum::source_in_stage(stage, k - begin, length));
    if (stage.until_trigger && !tau) {
      known.is_complete = false;
      break;
    }
  }
  return known;
}

std::optional<uint64_t> find_tau(const std::vector<IterationRecord>& iterations,
                                 const train::TrainConfig& config) {
  // Played through the run's own curriculum, so that the rule has one place.
  auto curriculum = train::make_curriculum(config, 0);
  for (const IterationRecord& record : iterations) {
    if (curriculum.is_done()) break;
    const TriggerRecord result = curriculum.close_iteration(curriculum::evidence_of(record));
    if (result.tau) return result.tau;
  }
  return std::nullopt;
}

}  // namespace ropd::study
