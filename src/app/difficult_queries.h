// Queries chosen by what the laboratory's initial student does: of all training queries those that it answers
// right about half of the time.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace ropd::app {

// Ids of 48 of OUTPUT/data/queries.jsonl, nearest to an accuracy of one half first, ties in their order. The
// student's responses are kept in OUTPUT/difficulty. Nothing after a stop request.
std::optional<std::vector<std::string>> difficult_queries(const Path& student, const Path& output);

}  // namespace ropd::app
