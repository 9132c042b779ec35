// The inputs that a study's folder was made from, in inputs.json: nodes of changed models, queries or suites are
// other nodes, so that a study would begin anew in silence beside what it has made.
#pragma once
#include <map>
#include <string>

#include "base/file.h"
#include "base/json.h"

namespace ropd::study {

// Content by name of input; empty where there is no such file yet. Fails when it was changed.
[[nodiscard]] Json read_seen_inputs(const Path& folder);

// Remembers the contents (name -> hash) of inputs that the folder has not seen yet. Fails when one that it has
// seen is another now; where changes are accepted a warning names it. Studies that share a folder share the file.
void note_inputs(const Path& folder, const std::map<std::string, std::string>& contents,
                 bool accepts_changes);

}  // namespace ropd::study
