// Whether all ranks are about to do the same: program, instruction set, settings, files. Compared before the
// work begins, because a difference would show later as other bits, or never.
#pragma once
#include <map>
#include <string>

#include "comm/world.h"

namespace ropd::comm {

using Facts = std::map<std::string, std::string>;  // by what they are: "program", "student files"

// All ranks together. Fails on rank 0, naming the rank, its host and the first fact that differs; the others
// return only when all agree.
void require_agreement(World& world, const Facts& facts);

}  // namespace ropd::comm
