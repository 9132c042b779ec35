// Banks: rollouts sampled once into a file (io/rollout_file.h) that survives a kill at any moment. Made again
// with the same arguments, what is there is kept, the missing responses are sampled, and the file ends with
// the same bytes.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "io/rollout_file.h"
#include "rollout/generator.h"

namespace ropd::rollout {

// A query as the engine sees it.
struct PromptedQuery {
  std::string query_id;
  std::vector<Token> prompt;
  std::string answer;
};

// For every query, in order, the samples first_sample .. first_sample + count - 1.
std::vector<Request> make_requests(std::span<const PromptedQuery> queries, uint32_t first_sample,
                                   uint32_t count, const RandomStream& stream);

// Where a bank comes from, for its description beside it (the rest is taken from the generator and from the
// requests, which share one stream).
struct BankOrigin {
  std::string model;        // a path, for people
  std::string fingerprint;  // of the weights in the generator
};

struct BankOptions {
  std::string stage = "rollouts";                                  // name of the progress line
  std::function<std::string(std::span<const Token>)> decode = {};  // fills `text`; may be empty
  std::function<void(size_t request, Token token)> on_token = {};  // live display; may be empty
  // Called before a response is kept: one that fails keeps it out and ends the work. May be empty.
  std::function<void()> check = {};
  // As in RunHooks; responses that were there before are not heard of. May be empty.
  uint32_t scores_top_k = 0;
  std::function<void(size_t request, Scores&& scores)> on_scores = {};
};

struct BankResult {
  RunSummary run;            // of this call
  size_t num_kept = 0;       // responses that were there before
  bool is_finished = false;  // false after a stop request: call again to go on
};

// The description that make_bank writes and compares; the second form needs no weights.
io::BankMeta bank_meta(const Generator& generator, std::span<const Request> requests,
                       const BankOrigin& origin);
io::BankMeta bank_meta(const EngineConfig& engine, model::Precision precision, uint64_t policy_step,
                       std::span<const Request> requests, const BankOrigin& origin);

// Samples what is missing of `path`. A response is durable when progress counts it as done. Fails, leaving
// everything as it is, when the file there was made in another way.
BankResult make_bank(Generator& generator, std::span<const Request> requests, const Path& path,
                     const BankOrigin& origin, const BankOptions& options = {});

// The rollouts of a bank, ids checked against the limits. Fails where its description names another model
// than `fingerprint`; a file without description is accepted with a note.
std::vector<Rollout> read_bank(const Path& path, const io::RolloutLimits& limits,
                               const std::string& fingerprint);

}  // namespace ropd::rollout
