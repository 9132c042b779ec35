#include "train/settings_change.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace ropd::train {
namespace {

constexpr std::array kOfUpdates = {"train.learning_rate", "train.weight_decay", "train.grad_clip"};
constexpr std::array kOthers = {"train.iterations",
                                "train.max_skipped_steps",
                                "train.teacher_ranks",
                                "train.activation_memory_gb",
                                "train.teacher_memory_gb",
                                "train.optimizer_storage",
                                "rollout.memory_gb",
                                "trigger.storage",
                                "student",
                                "teacher",
                                "student_base",
                                "teacher_base",
                                "data.queries",
                                "continue_from",
                                "output"};
constexpr std::array kSections = {"checkpoint.", "eval.", "alarms."};

bool is_of_updates(const std::string& key) {
  return std::find(kOfUpdates.begin(), kOfUpdates.end(), key) != kOfUpdates.end();
}

bool may_change(const std::string& key) {
  return is_of_updates(key) || std::find(kOthers.begin(), kOthers.end(), key) != kOthers.end() ||
         std::ranges::any_of(kSections, [&](const char* section) { return key.starts_with(section); });
}

// Stages may read their banks from another place.
bool differ_in_paths_only(const TrainConfig& before, const TrainConfig& after) {
  const auto without_paths = [](CurriculumConfig curriculum) {
    visit_bank_paths(curriculum, [](std::string& path) { path = "moved"; });
    return config_to_yaml(curriculum);
  };
  return without_paths(before.curriculum) == without_paths(after.curriculum);
}

}  // namespace

std::vector<ConfigDifference> allowed_changes(const TrainConfig& before, const TrainConfig& after) {
  const auto changes = config_differences(before, after);
  for (const ConfigDifference& change : changes) {
    if (may_change(change.key)) continue;
    if (change.key == "curriculum.stages" && differ_in_paths_only(before, after)) continue;
    fail(change.key, ": cannot change inside a run (", change.before, " -> ", change.after,
         "); start a new one, with continue_from to take over weights and optimizer. What may change: "
         "train.iterations, train.learning_rate, train.weight_decay, train.grad_clip, memory, checkpoint, "
         "eval, "
         "alarms, and paths");
  }
  return changes;
}

bool alters_weights(std::span<const ConfigDifference> changes) {
  return std::ranges::any_of(changes, [](const auto& change) { return is_of_updates(change.key); });
}

std::string describe(std::span<const ConfigDifference> changes) {
  std::string text;
  for (const ConfigDifference& change : changes)
    text += (text.empty() ? "" : ", ") + change.key + ": " + change.before + " -> " + change.after;
  return text;
}

}  // namespace ropd::train
