#include "train/verify_run.h"

#include <filesystem>

#include "base/error.h"
#include "eval/evaluate.h"
#include "io/checkpoint.h"
#include "io/damages.h"
#include "io/input_ledger.h"
#include "io/metrics_file.h"
#include "io/rollout_file.h"
#include "train/run_inputs.h"
#include "train/run_state.h"
#include "train/settings_change.h"
#include "train/train_config.h"

namespace ropd::train {
namespace {

namespace fs = std::filesystem;

void verify_config_and_inputs(Verification& result, const Path& directory, const io::ContentHash& hash) {
  if (!fs::exists(directory / "inputs.json")) {
    result.found.push_back(
        "config.yaml (made by an earlier version: neither it nor the inputs can be compared)");
    return;
  }
  const io::InputLedger ledger(directory / "inputs.json");
  const std::string text = read_file(directory / "config.yaml", 1 << 20);
  if (text != ledger.config() && text != ledger.config_before())
    result.damages.push_back((directory / "config.yaml").string() + ": edited since the run began");
  else
    result.found.push_back("config.yaml");
  // Without a suite that can be read, benchmarks are looked for where they lay.
  InputFiles files;
  io::finds_whole(result.damages, [&] {
    files =
        input_files(with_paths_from(parse_run_config(ledger.config(), "inputs.json"), ledger.directory()));
  });
  if (fs::is_directory(directory / "banks"))
    for (const auto& entry : fs::directory_iterator(directory / "banks"))
      files["banks/" + entry.path().filename().string()] = {{"", entry.path()}};
  const auto damages = ledger.damages(files, hash);
  result.damages.insert(result.damages.end(), damages.begin(), damages.end());
  if (damages.empty()) result.found.push_back("inputs (" + std::to_string(ledger.num_files()) + " files)");
}

void verify_metrics(Verification& result, const Path& directory,
                    const std::vector<io::CheckpointEntry>& checkpoints) {
  const Path path = directory / "metrics.jsonl";
  const uint64_t newest = checkpoints.empty() ? 0 : checkpoints.back().step;
  if (!fs::exists(path)) {
    if (newest > 0) result.damages.push_back(path.string() + ": missing");
    return;
  }
  if (const std::string damage = io::metrics_damage(path, checkpoints); !damage.empty()) {
    result.damages.push_back(damage);
    return;
  }
  const auto metrics = io::read_metrics(path);
  uint64_t first = 0, last = 0;
  const auto visit = [&](const std::vector<StepRecord>& steps) {
    for (const StepRecord& step : steps) {
      if (last == 0) first = step.step - 1;
      last = step.step;
    }
  };
  for (const IterationRecord& record : metrics.iterations) visit(record.steps);
  visit(metrics.open_steps);
  // A run that was continued from another one's checkpoint begins behind its steps.
  const bool is_continued =
      fs::exists(directory / "inputs.json") &&
      parse_run_config(io::InputLedger(directory / "inputs.json").config(), "inputs.json")
          .continue_from.has_value();
  const std::string gap = io::find_gap(metrics, is_continued ? first : 0, std::max(last, newest));
  if (gap.empty())
    result.found.push_back("metrics.jsonl");
  else
    result.damages.push_back(path.string() + ": " + gap);
}

}  // namespace

std::vector<io::CheckpointEntry> verify_checkpoints(Verification& result, const Path& directory) {
  std::vector<io::CheckpointEntry> whole;
  for (const auto& entry : io::list_checkpoints(directory / "checkpoints")) {
    const auto check = io::check_checkpoint(entry.path);
    result.damages.insert(result.damages.end(), check.damages.begin(), check.damages.end());
    result.blemishes.insert(result.blemishes.end(), check.blemishes.begin(), check.blemishes.end());
    if (!check.damages.empty()) continue;
    result.found.push_back("checkpoint of step " + std::to_string(entry.step));
    whole.push_back(entry);
  }
  return whole;
}

void verify_rollouts(Verification& result, const Path& folder) {
  if (!fs::is_directory(folder)) return;
  size_t whole = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".jsonl") || name.ends_with(".partial.jsonl")) continue;
    const std::string damage = io::bank_damage(entry.path());
    if (damage.empty())
      ++whole;
    else
      result.damages.push_back(damage);
  }
  if (whole > 0)
    result.found.push_back(folder.filename().string() + "/ (" + std::to_string(whole) + " files)");
}

void verify_evaluations(Verification& result, const Path& folder, bool follows_links) {
  if (!fs::is_directory(folder)) return;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_symlink() && !follows_links) continue;
    const auto damages = eval::evaluation_damages(entry.path());
    result.damages.insert(result.damages.end(), damages.begin(), damages.end());
    if (damages.empty()) result.found.push_back("evaluation " + entry.path().filename().string());
  }
}

Verification verify_run(const Path& directory, const VerifyOptions& options) {
  if (!fs::exists(directory / "config.yaml"))
    fail(directory.string(), ": has no config.yaml, expected a run directory");
  Verification result;
  verify_config_and_inputs(result, directory, options.hash);
  const auto checkpoints = verify_checkpoints(result, directory);
  verify_rollouts(result, directory / "banks");
  verify_rollouts(result, directory / "rollouts");
  verify_metrics(result, directory, checkpoints);
  verify_evaluations(result, directory / "eval", options.follows_links);
  return result;
}

}  // namespace ropd::train
