// Reads everything a run consists of and depends on: what `ropd verify RUN` tells.
#pragma once
#include <string>
#include <vector>

#include "base/file.h"

namespace ropd::train {

struct Verification {
  std::vector<std::string> found;      // what is whole: "checkpoint of step 40"
  std::vector<std::string> damages;    // what is not, a sentence each that begins with the file
  std::vector<std::string> blemishes;  // damage that no result depends on
};

// Config, inputs, checkpoints, banks and rollouts, metrics. Changes nothing. Fails for a folder that is no
// run, and where something cannot be read at all.
Verification verify_run(const Path& directory);

}  // namespace ropd::train
