// ropd sft: supervised fine-tuning of any model directory on any file of prompt/response pairs.
#include <CLI/CLI.hpp>
#include <memory>

#include "app/commands.h"
#include "app/output.h"
#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "io/model_path.h"
#include "train/sft_run.h"

namespace ropd::app {

void add_sft(CLI::App& app) {
  struct Options {
    std::string config;
    std::vector<std::string> overrides;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("sft", "supervised fine-tuning on prompt/response pairs");
  command
      ->add_option("config", options->config,
                   "YAML file with model, data, output, ... (docs/formats.md lists its keys)")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("overrides", options->overrides, "key=value, e.g. learning_rate=2e-5 epochs=3");
  command->footer(
      "Example:\n  ropd sft sft.yaml model=models/Qwen3-0.6B data=pairs.jsonl output=runs/sft\n"
      "The same command, or ropd resume, goes on where an interrupted run stopped.");
  command->callback([options] {
    auto config = load_config<train::SftConfig>(options->config, options->overrides);
    for (const auto& [key, value] :
         {std::pair{"model", &config.model}, {"data", &config.data}, {"output", &config.output}})
      if (value->empty()) fail(options->config, ": ", key, " is required");
    config.model = io::find_model(config.model).string();
    install_stop_handlers();
    const auto outcome = train::fine_tune(config);
    if (outcome == train::RunOutcome::stopped) end_stopped();
    log_info("done: ", config.output, "/model");
  });
}

}  // namespace ropd::app
