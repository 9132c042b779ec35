// The rows of a bank (rollout/bank.h) for whoever reads them while they are made.
#pragma once
#include <functional>
#include <span>
#include <string_view>

#include "rollout/bank.h"

namespace ropd::rollout {

// The rows that make_bank writes, in the same order, each to `write` as soon as all before it are there. Nothing
// is kept: after a stop request the rest is missing.
RunSummary stream_rows(Generator& generator, std::span<const Request> requests,
                       const std::function<void(std::string_view row)>& write,
                       const BankOptions& options = {});

}  // namespace ropd::rollout
