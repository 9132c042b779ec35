// Files that are made beside their place, or only for as long as a process uses them, and that a killed process
// leaves: the next one removes them. Who still uses one holds a lock on it.
#pragma once
#include "base/file.h"

namespace ropd {

// A new, locked file NAME.tmp-* beside `path`, open for reading and writing; its name is written to `temporary`.
// The lock ends with the descriptor. Fails, naming `path`.
[[nodiscard]] int create_temporary(const Path& path, Path& temporary);

// Temporaries of `path` whose owner was killed: nobody holds their lock. Where locks do not work they stay.
void remove_stale_temporaries(const Path& path);

}  // namespace ropd
