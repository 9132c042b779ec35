// ropd verify: reads a run, a study, a checkpoint, a model, an evaluation or a bank completely and says what is whole
// and what is not.
#include <CLI/CLI.hpp>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/output.h"
#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/terminal_line.h"
#include "base/visible_text.h"
#include "eval/evaluate.h"
#include "io/checkpoint.h"
#include "io/input_ledger.h"
#include "io/model_directory.h"
#include "io/model_path.h"
#include "io/rollout_file.h"
#include "model/weights.h"
#include "study/verify_study.h"
#include "train/sft_run.h"
#include "train/verify_run.h"

namespace ropd::app {
namespace {

namespace fs = std::filesystem;
using train::Verification;

Verification verify_checkpoint(const Path& path) {
  const auto check = io::check_checkpoint(path);
  Verification result{.found = {}, .damages = check.damages, .blemishes = check.blemishes};
  if (check.damages.empty()) result.found.push_back("checkpoint of step " + std::to_string(check.step));
  return result;
}

// Shapes, names and numbers; and the manifest above it, where it is part of a checkpoint.
Verification verify_model(const Path& path, const Path& base) {
  Verification result;
  const Path above = fs::absolute(path).lexically_normal().parent_path();
  if (fs::exists(above / "MANIFEST.json")) result = verify_checkpoint(above);
  const auto directory = std::make_shared<const io::ModelDirectory>(path, base);
  model::check_finite(model::map_weights(directory), path.string());
  std::string all;
  auto files = io::own_model_files(path);
  if (directory->adapter())
    for (auto& file : io::own_model_files(directory->base_path()))
      files.push_back({"base/" + file.name, std::move(file.path)});
  for (const auto& file : files) {
    const std::string hash = io::content_hash(file.path);
    all += file.name + '\0' + hash + '\n';
    result.found.push_back(file.name + "  " + hash.substr(0, 16));
  }
  result.found.push_back("the whole model  " + sha256(all).substr(0, 16));
  return result;
}

Verification verify(const Path& path, const Path& base) {
  if (!fs::exists(path)) fail(path.string(), ": does not exist");
  if (fs::is_directory(path)) {
    if (fs::exists(path / "MANIFEST.json")) return verify_checkpoint(path);
    if (fs::exists(path / "config.yaml"))
      return train::is_sft_run(path) ? train::verify_sft_run(path) : train::verify_run(path);
    if (io::is_model(path)) return verify_model(path, base);
    if (study::is_study_folder(path)) return study::verify_study(path);
    if (fs::exists(path / "generation.json") || fs::exists(path / "summary.json"))
      return {.found = {"evaluation"}, .damages = eval::evaluation_damages(path), .blemishes = {}};
    fail(path.string(),
         ": neither a run (config.yaml) nor a checkpoint (MANIFEST.json) nor a model (config.json) nor an "
         "adapter (adapter_config.json) nor a study (NAME.graph.json) nor an evaluation (generation.json, "
         "summary.json)");
  }
  Verification result;
  const std::string damage = io::bank_damage(path);
  (damage.empty() ? result.found : result.damages)
      .push_back(damage.empty() ? path.filename().string() : damage);
  return result;
}

// What the system counts for this process; mapped files are not in it, but those that are large are hashed too.
uint64_t megabytes_read() {
  std::ifstream file("/proc/self/io");
  std::string name;
  uint64_t bytes = 0;
  file >> name >> bytes;  // rchar: 123
  return bytes / 1'000'000;
}

// While it lives, a line on a terminal that says how much has been read. What is read is known to many readers;
// counted from outside, none of them has to tell.
class ReadingProgress {
 public:
  ReadingProgress() {
    if (terminal_columns()) thread_ = std::jthread([](std::stop_token stop) { show(stop); });
  }

 private:
  std::jthread thread_;

  static void show(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any waiting;
    std::unique_lock lock(mutex);
    const auto pause = [&] {
      waiting.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; });
    };
    pause();
    if (stop.stop_requested()) return;  // done before anybody wondered
    Progress progress("verify: MB read", 0, "MB");
    for (; !stop.stop_requested(); pause()) progress.update(static_cast<double>(megabytes_read()));
  }
};

void print(const Verification& result, bool as_json) {
  if (as_json) {
    print_json({{"whole", result.found}, {"damaged", result.damages}, {"blemished", result.blemishes}});
    return;
  }
  const auto list = [](const char* state, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) std::printf("%-9s  %s\n", state, visible_line(text).c_str());
  };
  list("whole", result.found);
  list("blemished", result.blemishes);
  list("damaged", result.damages);
}

}  // namespace

void add_verify(CLI::App& app) {
  auto path = std::make_shared<std::string>(), base = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "verify", "read a run, study, checkpoint, model, evaluation or bank completely and find any damage");
  command
      ->add_option(
          "path", *path,
          "run directory, study folder, checkpoint, model or adapter directory, evaluation, or rollout file")
      ->required();
  add_base(*command, "--base", *base);
  command->footer("Examples:\n  ropd verify runs/qwen3-0.6b-ropd\n  ropd verify models/Qwen3-4B");
  command->callback([path, base, command] {
    std::optional<ReadingProgress> progress(std::in_place);
    const Verification result = verify(*path, *base);
    progress.reset();
    print(result, wants_json(*command));
    if (!result.damages.empty())
      fail(*path, ": ", result.damages.size(), result.damages.size() == 1 ? " damage" : " damages",
           ", the first: ", result.damages.front());
  });
}

}  // namespace ropd::app
