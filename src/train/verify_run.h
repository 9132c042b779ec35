// Reads everything a run consists of and depends on: what `ropd verify RUN` tells.
#pragma once
#include <string>
#include <vector>

#include "base/file.h"
#include "io/checkpoint.h"
#include "io/input_ledger.h"

namespace ropd::train {

struct Verification {
  std::vector<std::string> found;      // what is whole: "checkpoint of step 40"
  std::vector<std::string> damages;    // what is not, a sentence each that begins with the file
  std::vector<std::string> blemishes;  // damage that no result depends on
};

struct VerifyOptions {
  io::ContentHash hash = io::content_hash;  // of inputs
  bool follows_links = true;                // to evaluations that lie elsewhere
};

// Config, inputs, checkpoints, banks and rollouts, metrics, evaluations. Changes nothing. Fails for a folder that
// is no run, and where something cannot be read at all.
Verification verify_run(const Path& directory, const VerifyOptions& options = {});

// Its parts, also for what keeps the same things elsewhere; a folder that is not there holds nothing.
// Those that are whole.
std::vector<io::CheckpointEntry> verify_checkpoints(Verification& result, const Path& directory);
void verify_rollouts(Verification& result, const Path& folder);
void verify_evaluations(Verification& result, const Path& folder, bool follows_links = true);

}  // namespace ropd::train
