// Whether the responses of an evaluation are still those that were sampled and scored: their hash is in
// generation.json, and in summary.json what that said when they were scored.
#pragma once
#include <string>

#include "base/file.h"

namespace ropd::stats {

// Fails when FOLDER/responses.jsonl is not the file with this hash. Nothing is compared where the hash is empty
// or the file is elsewhere. Reads all of it.
void check_responses(const Path& folder, const std::string& sha256);

// The same with the hash that FOLDER/summary.json (or the file itself) speaks of.
void check_scored_responses(const Path& directory_or_file);

}  // namespace ropd::stats
