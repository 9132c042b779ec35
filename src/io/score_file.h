// Scores as JSONL (docs/formats.md): one object per rollout, arrays over response positions.
#pragma once
#include <string>

#include "records/scores.h"

namespace ropd::io {

// The line without its newline. Numbers have as many digits as reading them back exactly needs; impossible is
// null.
std::string scores_line(const Scores& scores);

}  // namespace ropd::io
