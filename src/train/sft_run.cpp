#include "train/sft_run.h"

#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "io/checkpoint.h"
#include "io/jsonl.h"
#include "io/metrics_file.h"
#include "io/model_directory.h"
#include "train/run_checkpoints.h"

namespace ropd::train {
namespace {

namespace fs = std::filesystem;

// The settings of a run with paths as they are meant.
SftConfig config_of(const Path& directory, const io::InputLedger& ledger, const std::string& yaml) {
  auto config = parse_config<SftConfig>(yaml, (directory / "config.yaml").string());
  for (std::string* path : {&config.model, &config.base, &config.data})
    if (!path->empty() && Path(*path).is_relative() && fs::exists(ledger.directory() / *path))
      *path = (ledger.directory() / *path).string();
  config.output = directory.string();
  return config;
}

void verify_metrics(Verification& result, const Path& path,
                    const std::vector<io::CheckpointEntry>& checkpoints) {
  if (const std::string damage = io::metrics_damage(path, checkpoints); !damage.empty()) {
    result.damages.push_back(damage);
    return;
  }
  const uint64_t newest = checkpoints.empty() ? 0 : checkpoints.back().step;
  uint64_t step = 0;
  if (fs::exists(path)) {
    io::JsonlReader reader(path);
    io::for_each_json_row(reader, [&](Json&& row, const std::string& where) {
      const uint64_t expected = step + 1;
      const auto found = row.find("step");
      if (found == row.end() || !found->is_number_unsigned() || *found != expected)
        fail(where, ": expected step ", expected, " (a line is missing or changed)");
      step = expected;
    });
  }
  if (step < newest)
    result.damages.push_back(path.string() + ": ends at step " + std::to_string(step) +
                             ", a checkpoint has " + std::to_string(newest));
  else
    result.found.push_back("metrics.jsonl");
}

}  // namespace

bool is_sft_run(const Path& directory) {
  const Path path = directory / "config.yaml";
  if (!fs::exists(path)) return false;
  try {
    const ConfigNode config = parse_yaml(read_file(path, 1 << 20), path.string());
    return config_detail::find_entry(config, "model") && !config_detail::find_entry(config, "student");
  } catch (const Error&) {  // whoever opens it as a run says what is wrong
    return false;
  }
}

RunOutcome fine_tune(const SftConfig& config, const std::string& yaml) {
  const auto data = load_sft_data(config);
  log_info(config.data, ": ", data.num_examples, " examples, ", data.steps, " steps");
  return run_sft(
      config, data.examples, data.steps,
      [&] {
        const io::ModelDirectory directory(config.model, config.base);
        if (directory.config().is_moe()) fail(config.model, ": mixture-of-experts models cannot be trained");
        return model::Parameters::load(directory);
      },
      yaml);
}

RunOutcome resume_sft(const Path& directory, bool starts_over) {
  if (starts_over) {
    if (fs::exists(directory / "model"))
      fail(directory.string(), ": is done, its result is model/; to train again choose another output");
    give_up_checkpoints(io::RunDirectory::open(directory));
  }
  const std::string yaml = read_file(directory / "config.yaml", 1 << 20);
  return fine_tune(config_of(directory, io::InputLedger(directory / "inputs.json"), yaml), yaml);
}

Verification verify_sft_run(const Path& directory) {
  Verification result;
  const std::string yaml = read_file(directory / "config.yaml", 1 << 20);
  const io::InputLedger ledger(directory / "inputs.json");
  if (ledger.config().empty()) {
    result.found.push_back(
        "config.yaml (made by an earlier version: neither it nor the inputs can be compared)");
  } else {
    if (yaml != ledger.config())
      result.damages.push_back((directory / "config.yaml").string() + ": edited since the run began");
    else
      result.found.push_back("config.yaml");
    auto files = sft_inputs(config_of(directory, ledger, ledger.config()));
    if (fs::exists(directory / "model")) files[io::kResultRole] = io::own_model_files(directory / "model");
    const auto damages = ledger.damages(files);
    result.damages.insert(result.damages.end(), damages.begin(), damages.end());
    if (damages.empty()) result.found.push_back("inputs (" + std::to_string(ledger.num_files()) + " files)");
  }
  verify_metrics(result, directory / "metrics.jsonl", verify_checkpoints(result, directory));
  if (fs::exists(directory / "model")) {
    const io::ModelDirectory model(directory / "model");
    result.found.push_back("model/ (" + std::to_string(model.num_parameters()) + " parameters)");
  }
  return result;
}

}  // namespace ropd::train
