// The rollout engine: many responses at once, sampled from one model by continuous batching over a paged
// cache. A response depends on the weights, its prompt and its key (seed, stream, query, sample) and on
// nothing else: not on the batch, the order of requests, threads, page size, chunks or preemptions.
// Log-probabilities have the bits that scoring computes in the same precision.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/decode.h"
#include "records/rollout.h"
#include "records/scores.h"
#include "rollout/decode_rounds.h"
#include "rollout/request.h"
#include "rollout/sampler.h"
#include "rollout/scheduler.h"

namespace ropd::rollout {

struct EngineConfig {
  int64_t max_response_tokens = 0;  // a response also ends where the model's context does
  std::vector<Token> eos_ids;       // any of them ends a response
  SamplingConfig sampling;
  uint64_t memory_bytes = 0;  // for keys and values; 0 = what is free when a run starts, minus a reserve
  int64_t page_tokens = 32;   // a multiple of 32
  int64_t prefill_chunk_tokens = 0;  // prompt tokens per step; 0 = by the size of the model
  int64_t max_batch = 0;  // responses in flight; 0 = by the size of the model and what its cache takes
  bool with_logprobs = false;
  // Rows of a step up to which guesses run with it (rollout/repeats.h): they show in speed alone. 0 = none; -1 = by
  // the size of the model.
  int64_t rows_with_guesses = -1;
  DecodeRounds::LostShare lost_share = {};  // empty = as measured
};

struct RunSummary {
  uint64_t num_done = 0;
  uint64_t num_done_tokens = 0;  // of their responses
  uint64_t num_at_limit = 0;     // of those done, ended by the limit
  uint64_t num_tokens = 0;       // drawn, of unfinished responses too
  uint64_t num_steps = 0;
  uint64_t num_guesses = 0, num_right_guesses = 0;
  uint64_t num_preemptions = 0;
  uint64_t num_recomputed_tokens = 0;
  uint64_t cache_bytes = 0;  // reserved for keys and values
  bool was_stopped = false;  // by stop_requested(); unfinished responses are dropped
  double seconds = 0;
  // What progress shows behind the rate: "mean length 212, 3% at the limit, 64 in flight".
  uint64_t num_in_flight = 0;
  std::string note() const;
};

// What a run tells its caller, one call at a time, though not always on the calling thread. What a hook throws
// ends the run.
struct RunHooks {
  // A finished response; `text` is left to the caller.
  std::function<void(size_t request, Rollout&& rollout)> on_done;
  // Every token as it is drawn, for live display; may be empty.
  std::function<void(size_t request, Token token)> on_token = {};
  // The student's scores of a response, with so many candidates, taken while it was drawn
  // (rollout/sampling_scores.h): right before its on_done. Without on_scores none are taken.
  uint32_t scores_top_k = 0;
  std::function<void(size_t request, Scores&& scores)> on_scores = {};
  // Which requests to work on, where several engines share them: asked for more whenever there is room. An empty
  // list: none have come yet, which is no answer where it may wait. Nothing: there are no more. Without this
  // all of them.
  std::function<std::optional<std::vector<size_t>>(size_t room, bool may_wait)> take = {};
  // After every step; may be empty. Threads that decode sequences of their own make steps of their own.
  std::function<void(const RunSummary& so_far)> on_step = {};
};

// Responses that each of the threads of a small model has in flight: enough to share its weights, but no more
// than keep their keys and values in a core's share of the cache. 480 responses of 200 tokens took 1.13 times
// as long with 36 a thread as with 18.
int64_t batch_in_cache(double tokens_each, double token_bytes);

// Keeps a packed copy of the weights; the embedding and the norms stay views into the caller's. Not
// thread-safe; run() uses all threads.
class Engine {
 public:
  Engine(const model::Weights& weights, model::Precision precision, EngineConfig config,
         uint64_t policy_step = 0);
  // Weights of the same shape after an optimization step; every rollout from now on carries policy_step.
  void replace_weights(const model::Weights& weights, uint64_t policy_step);
  // Refuses requests that cannot run: empty prompt, foreign ids, no room in context or memory.
  void check(std::span<const Request> requests) const;
  // Checks all requests before anything is sampled; polls stop_requested() before every step.
  RunSummary run(std::span<const Request> requests, const RunHooks& hooks);

  const EngineConfig& config() const { return config_; }
  const ModelConfig& model_config() const { return decoder_.weights().config; }
  model::Precision precision() const { return decoder_.precision(); }
  uint64_t policy_step() const { return policy_step_; }

 private:
  EngineConfig config_;
  model::Decoder decoder_;
  uint64_t policy_step_;
  SchedulerConfig scheduler_config() const;
  struct PageBudget {
    int64_t num_pages = 0;
    uint64_t budget_bytes = 0;
  };
  PageBudget choose_pages(std::span<const Request> requests) const;
  // By the size of the model, and of a small one by the length of the responses that are done.
  int64_t choose_batch(const RunSummary& so_far, std::span<const Request> requests, int64_t workers) const;
  struct Run;
  struct Worker {  // one thread's step, and memory that is kept between steps
    std::vector<Work> step;
    std::vector<model::DecodeRows> rows;
    std::vector<std::vector<Draw>> draws;  // of each sequence: one, and one for every guess that was right
    model::DecodeMemory memory;
  };
  std::vector<std::unique_ptr<Worker>> workers_;
  void run_round(Run& run, const DecodeRounds::Round& round);
  void run_steps(Run& run, Worker& worker) const;
  static void take_requests(Run& run);
  bool begin_step(Run& run, Worker& worker) const;
  void compute_step(Run& run, Worker& worker) const;
  void finish_step(Run& run, Worker& worker) const;
  bool ends_response(Token token) const;
  void append(Run& run, Sequence& sequence, const Draw& drawn) const;
};

}  // namespace ropd::rollout
