// ropd merge: an adapter and its base as one model directory.
#include <CLI/CLI.hpp>
#include <memory>

#include "app/arguments.h"
#include "app/commands.h"
#include "base/error.h"
#include "base/log.h"
#include "io/model_directory.h"
#include "io/save_model.h"
#include "model/merge.h"

namespace ropd::app {
namespace {

struct Options {
  std::string adapter, base, out, dtype = "base";
};

std::optional<DType> dtype_of(const std::string& name) {
  if (name == "f32") return DType::f32;
  if (name == "bf16") return DType::bf16;
  if (name == "f16") return DType::f16;
  return std::nullopt;
}

void merge(const Options& options) {
  const auto directory = std::make_shared<const io::ModelDirectory>(options.adapter, options.base);
  if (!directory->adapter())
    fail(options.adapter, ": is a model already, expected an adapter (adapter_config.json)");
  io::save_model_directory(options.out,
                           {.source_directory = directory->text_path(),
                            .config_json = directory->config_json(),
                            .generation_config_json = directory->generation_config_json(),
                            .base_model = directory->base_path(),
                            .description = "An adapter and its base, merged by ropd merge."},
                           model::merged_tensors(directory, dtype_of(options.dtype)));
  log_info(options.out, ": ", directory->adapter()->matrices().size(), " matrices of ",
           directory->base_path().string(), " merged with ", options.adapter);
}

}  // namespace

void add_merge(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("merge", "an adapter and its base as one model directory");
  command->add_option("adapter", options->adapter, "adapter directory, checkpoint or run")
      ->required()
      ->transform(to_model());
  add_base(*command, "--base", options->base);
  command->add_option("--out", options->out, "new model directory; appears whole")->required();
  command->add_option("--dtype", options->dtype, "of the weights; base: as the base stores them")
      ->check(CLI::IsMember({"base", "f32", "bf16", "f16"}))
      ->capture_default_str();
  command->footer("Example:\n  ropd merge runs/adapter/checkpoints/step-00060 --out models/merged");
  command->callback([options] { merge(*options); });
}

}  // namespace ropd::app
