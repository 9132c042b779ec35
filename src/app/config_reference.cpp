// ropd config-reference: the content of docs/config.md, for whoever changed a field list. Not shown in
// --help.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/commands.h"
#include "base/config_fields.h"
#include "train/train_config.h"

namespace ropd::app {

void add_config_reference(CLI::App& app) {
  auto* command = app.add_subcommand("config-reference", "print docs/config.md");
  command->group("");  // hidden
  command->callback(
      [] { std::fputs(config_reference_markdown<train::TrainConfig>("Configuration").c_str(), stdout); });
}

}  // namespace ropd::app
