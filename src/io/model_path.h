// Where a model is asked for, a checkpoint or a whole run may be named too.
#pragma once
#include "base/file.h"

namespace ropd::io {

// Whether it looks like a model directory or an adapter directory.
bool is_model(const Path& path);

// The model directory that `path` means: itself; `model/` of a checkpoint or of a fine-tuning run; that of
// the newest checkpoint of a run. A model that is part of a checkpoint is compared with its manifest first, the
// result of a fine-tuning run with what the run keeps of it (inputs.json). A path that is none of these is given back
// as it is: whoever opens it says what is wrong.
Path find_model(const Path& path);

}  // namespace ropd::io
