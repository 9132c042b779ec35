// The responses a run keeps for reading (samples/), newest first, filtered as a person asks.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "records/response_sample.h"

namespace ropd::watch {

struct ResponseFilter {
  std::string text;  // somewhere in query id, question, answer or response; ASCII letters of either case
  std::optional<bool> correct;
  std::optional<Finish> finish;
  uint64_t min_tokens = 0, max_tokens = UINT64_MAX;
  std::optional<uint64_t> iteration;
};

bool passes(const ResponseSample& sample, const ResponseFilter& filter);

// {"responses": [...], "num_read": n, "problems": [...], "steps": of the tokens' marks}: bounded in number and size, every text fit to be
// shown. A file that cannot be read is a problem that is told, not a failure.
Json find_responses(const Path& run, const ResponseFilter& filter);

}  // namespace ropd::watch
