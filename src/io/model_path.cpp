#include "io/model_path.h"

#include <filesystem>

#include "base/error.h"
#include "io/adapter_directory.h"
#include "io/checkpoint.h"

namespace ropd::io {

namespace fs = std::filesystem;

bool is_model(const Path& path) { return fs::exists(path / "config.json") || is_adapter_directory(path); }

Path find_model(const Path& path) {
  if (is_model(path)) {
    const Path above = fs::canonical(path).parent_path();
    if (fs::exists(above / "MANIFEST.json")) verify_checkpoint(above);
    return path;
  }
  if (fs::exists(path / "MANIFEST.json")) verify_checkpoint(path);
  if (is_model(path / "model")) return path / "model";
  if (!fs::exists(path / "config.yaml")) return path;
  const auto newest = newest_valid_checkpoint(path / "checkpoints");
  if (!newest) fail(path.string(), ": a run without a checkpoint yet, expected a model");
  return newest->path / "model";
}

}  // namespace ropd::io
