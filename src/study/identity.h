// What a state of training is, by content: two states with equal identities hold the same bits, whoever made
// them and for whichever study.
//   state 0      arithmetic, inputs (student, teacher, queries), settings that influence results
//   state k      state k - 1 and the source of iteration k
// Settings of the curriculum and of the trigger do not enter: what they decide shows in the sources.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "records/metrics.h"
#include "records/source.h"
#include "train/train_config.h"

namespace ropd::study {

// A hash of texts, with their borders: ("ab", "c") is not ("a", "bc").
std::string identity_of(const std::vector<std::string>& parts);

// Changes with tests/golden/tiny_run_losses.txt; with bf16 products also with the machine's instruction set.
std::string arithmetic_version(const train::TrainConfig& config);

// Settings that do not influence any result: keys, or sections with everything below them. A test compares
// the list with the keys that exist; a key that is not in it counts as one that does.
const std::vector<std::string_view>& neutral_keys();

// "train.learning_rate=1e-6" and so on, all that influence results, without inputs.
std::vector<std::string> influential_settings(const train::TrainConfig& config);

// Content of what a configuration names; looked at once for every path.
struct Inputs {
  std::string student, teacher, queries;
  std::map<std::string, std::string> banks = {};  // rollout files of the stages, by path
};

std::string initial_state(const train::TrainConfig& config, const Inputs& inputs);
// A continuation: settings of its own from the state of another run on.
std::string continued_state(const train::TrainConfig& config, const Inputs& inputs, const std::string& from);
// What an iteration of this source does to a state: sources that draw on banks depend on their size, those
// that read files on their content.
std::string next_state(const std::string& before, const Source& source, const train::TrainConfig& config,
                       const Inputs& inputs);
// The bank of the initial student that such a run replays.
std::string initial_bank_identity(const train::TrainConfig& config, const Inputs& inputs);

// The sources of a run's iterations as far as they are known: behind a trigger only with tau.
struct KnownSources {
  std::vector<Source> sources;  // [iterations]; up to a stage that has not ended yet
  bool is_complete = false;     // false: the stage that ends by the trigger may end sooner
};
KnownSources known_sources(const train::TrainConfig& config, std::optional<uint64_t> tau);

// The iteration that sets the trigger, from the recorded comparisons of a run that kept sampling.
std::optional<uint64_t> find_tau(const std::vector<IterationRecord>& iterations,
                                 const train::TrainConfig& config);

}  // namespace ropd::study
