// The decoder over a paged cache: new tokens of many sequences at once, prompts in chunks and single tokens
// alike. Gives the same bits as forward() over the whole sequences.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "model/forward.h"
#include "model/kv_cache.h"

namespace ropd::model {

// Consecutive new tokens of one sequence. The pages for all positions up to the last one must be allocated.
struct DecodeRows {
  std::span<const Token> tokens;
  int64_t first_position = 0;
  const int32_t* pages = nullptr;       // the sequence's page table
  bool wants_logits = false;            // of the last token and of every guess
  std::span<const Token> guesses = {};  // what may come behind them; the pages must have room for these, too
  size_t num_rows() const { return tokens.size() + guesses.size(); }
};

// Gets the logits [1 + guesses, V] of the last token and the guesses of a group; may change them. Called by several
// threads at a time.
using LogitsConsumer = std::function<void(size_t group, std::span<float> logits)>;

// What a step works in; kept between steps. Steps at the same time need one each.
struct DecodeMemory {
  Workspace workspace;
  Buffer hidden, last_rows, logits;
};

class Decoder {
 public:
  // `weights` is best packed in `precision` (pack_weights); the cache must have been made for the same
  // precision.
  Decoder(Weights weights, Precision precision);
  // Weights of the same shape, e.g. after an optimization step.
  void replace_weights(Weights weights) { weights_ = std::move(weights); }
  const Weights& weights() const { return weights_; }
  Precision precision() const { return precision_; }
  // Runs the groups through all layers, storing their keys and values. Each sequence appears in one group at
  // most, and no group reads a page (of a shared prompt) that another one writes. Several threads may run
  // steps of different sequences at a time; each of these then stays on its thread.
  void step(DecodeMemory& memory, KvCache& cache, std::span<const DecodeRows> groups,
            const LogitsConsumer& consume) const;

 private:
  Weights weights_;
  const Precision precision_;
};

}  // namespace ropd::model
