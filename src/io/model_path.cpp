#include "io/model_path.h"

#include <filesystem>

#include "base/error.h"
#include "io/adapter_directory.h"
#include "io/checkpoint.h"
#include "io/input_ledger.h"

namespace ropd::io {

namespace fs = std::filesystem;

namespace {

// Of a run of `ropd sft`; of anything else nothing is held under this role.
void check_result(const Path& run) {
  if (fs::exists(run / "config.yaml"))
    InputLedger(run / "inputs.json").check_made(kResultRole, own_model_files(run / "model"));
}

}  // namespace

bool is_model(const Path& path) { return fs::exists(path / "config.json") || is_adapter_directory(path); }

Path find_model(const Path& path) {
  if (is_model(path)) {
    const Path itself = fs::canonical(path), above = itself.parent_path();
    if (fs::exists(above / "MANIFEST.json")) verify_checkpoint(above);
    if (itself.filename() == "model") check_result(above);
    return path;
  }
  if (fs::exists(path / "MANIFEST.json")) verify_checkpoint(path);
  if (is_model(path / "model")) {
    check_result(path);
    return path / "model";
  }
  if (!fs::exists(path / "config.yaml")) return path;
  const auto newest = newest_valid_checkpoint(path / "checkpoints");
  if (!newest) fail(path.string(), ": a run without a checkpoint yet, expected a model");
  return newest->path / "model";
}

}  // namespace ropd::io
