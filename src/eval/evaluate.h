// The generating half of an evaluation: every response that a suite asks for and the folder does not hold
// yet. Responses go to responses.jsonl as they finish, each with a checksum, and are put into request order at
// the end, so that an interrupted and an uninterrupted evaluation give identical files. generation.json beside
// them says how they were made and, at the end, their hash; a folder whose responses were made in another way
// or were changed afterwards is refused, naming the difference.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "eval/outcomes.h"
#include "eval/suite.h"
#include "rollout/generator.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace ropd::eval {

// What is asked with which model, besides what the engine knows itself.
struct GenerationOrigin {
  std::string model;              // a path, for people; not compared
  std::string model_fingerprint;  // rollout::weights_fingerprint
  uint64_t seed = 1;
  std::string suite_file = {},
              data = {};  // as given to `ropd eval`, for commands that repeat it; not compared
};

struct GenerationResult {
  uint64_t num_kept = 0;     // responses that were there before
  bool is_finished = false;  // false after a stop request: call again to go on
  rollout::RunSummary run;   // of this call
};

// How the responses of a folder are made: suite, model, tokenizer, template, sampling. The content of
// generation.json.
Json generation_record(const rollout::Generator& generator, const Suite& suite,
                       const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
                       const GenerationOrigin& origin);

// Fills DIRECTORY/responses.jsonl. The folder is made when it is absent. `check` is called before a response is
// kept: one that fails keeps it out and ends the work. May be empty.
GenerationResult generate_responses(rollout::Generator& generator, const Suite& suite,
                                    const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
                                    const Path& directory, const GenerationOrigin& origin,
                                    const std::function<void()>& check = {});

// Writes summary.json, sealed, and summary.md into the folder. `about` is what generation.json says, or null for
// responses from elsewhere.
void write_evaluation(const Path& directory, const Evaluation& evaluation, const Json& about);

// generation.json of a folder, or null where it has none. Fails when it was changed.
Json read_generation_record(const Path& directory);

// Fails when the responses of a folder are not those that its generation.json speaks of. Reads all of them.
void check_generated(const Path& directory);

// What is damaged in a folder of an evaluation, each a sentence that begins with the file.
[[nodiscard]] std::vector<std::string> evaluation_damages(const Path& directory);

}  // namespace ropd::eval
