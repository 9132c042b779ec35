// Which tokens of which sequences run in the next step: continuous batching over a bounded number of pages.
//   admission   preempted sequences first, then samples of prompts that are in the cache, then new prompts;
//               only while every running sequence could still get one more page
//   prompts     prefilled once, in chunks, by the first sample; the other samples fork its pages
//   preemption  when pages run out, the youngest sequence gives up its pages and keeps its tokens; they are
//               run again later, and nothing is drawn twice
//   guesses     where a step has so few rows that more cost little, what a sequence may say next runs with it
//   workers     several steps may run side by side, each with its share of the sequences; what is in a step
//               is left alone until it is complete
// The oldest sequence is never preempted and fits alone, so every request ends. No response depends on
// anything decided here: this file is about memory and speed.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/kv_cache.h"
#include "rollout/page_table.h"
#include "rollout/repeats.h"
#include "rollout/request.h"

namespace ropd::rollout {

struct SchedulerConfig {
  int64_t max_batch = 64;              // sequences in flight
  int64_t prefill_chunk_tokens = 256;  // prompt tokens of one step
  int64_t max_response_tokens = 0;
  int64_t max_positions = 0;      // the model's context
  int64_t rows_with_guesses = 0;  // of a step, up to which there are guesses; 0 = none are made
};

// A request in flight, or preempted (then without pages).
struct Sequence {
  explicit Sequence(model::KvCache& cache) : pages(cache) {}
  size_t request = 0;  // index
  size_t group = 0;    // of its prompt
  uint64_t age = 0;    // rank of its first admission
  uint64_t query_key = 0;
  uint64_t stream_seed = 0;
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;       // prompt and response
  int64_t num_cached = 0;       // tokens whose keys and values are in the pages
  std::vector<Token> tokens;    // prompt, then response so far
  std::vector<float> logprobs;  // [response so far], if wanted
  Repeats repeats;
  PageTable pages;
  bool is_in_step = false;
  bool is_finished = false;
  int64_t num_left() const { return static_cast<int64_t>(tokens.size()) - num_cached; }
};

// The next num_rows tokens of a sequence, from num_cached on, and what may come behind the last of all; their pages
// are allocated.
struct Work {
  Sequence* sequence = nullptr;
  int64_t num_rows = 0;
  std::vector<Token> guesses = {};
  bool reaches_end() const { return num_rows == sequence->num_left(); }
};

// Positions a sequence may take in the cache: the last drawn token is never run.
int64_t longest_cached(int64_t prompt_tokens, const SchedulerConfig& config);

// Not thread-safe. Cache and requests must outlive it; every request must fit the cache alone.
class Scheduler {
 public:
  // With none enlisted.
  Scheduler(model::KvCache& cache, std::span<const Request> requests, const SchedulerConfig& config);
  // Takes these requests on, by index, each once.
  void enlist(std::span<const size_t> requests);
  void enlist_all();
  // How many more may be enlisted until there are as many as may be in flight.
  size_t room() const;
  // From the next admission on.
  void limit_batch(int64_t max_batch) { config_.max_batch = max_batch; }
  bool is_done() const { return running_.empty() && preempted_.empty() && num_unstarted_ == 0; }
  // The next step of one of so many workers: its share of the sequences that are in no step. Empty when done or
  // when everything that could run is in other steps.
  std::vector<Work> plan(int64_t workers = 1);
  // After the step ran and the engine appended what it drew: books its rows and takes finished sequences out.
  void complete(std::span<const Work> step);
  uint64_t num_preemptions() const { return num_preemptions_; }
  uint64_t num_recomputed_tokens() const { return num_recomputed_tokens_; }
  int64_t num_running() const { return static_cast<int64_t>(running_.size()); }

 private:
  // The requests of one prompt. Its own pages hold the prompt without the last token while samples still
  // wait.
  struct Group {
    explicit Group(model::KvCache& cache) : pages(cache) {}
    std::vector<size_t> requests;
    size_t num_started = 0;
    int64_t num_preempted = 0;
    const Sequence* leader = nullptr;  // prefills the prompt now
    PageTable pages;
    bool is_ready = false;  // pages hold the prompt
    bool is_waited_for() const { return num_started < requests.size() || num_preempted > 0; }
  };

  // constant after construction
  model::KvCache& cache_;
  std::span<const Request> requests_;
  // state
  SchedulerConfig config_;                                          // all but max_batch is constant
  std::unordered_map<const std::vector<Token>*, size_t> group_of_;  // by prompt
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<size_t> open_groups_;  // started, and some requests are not
  size_t next_group_ = 0;
  size_t num_unstarted_ = 0;
  std::vector<std::unique_ptr<Sequence>> running_, preempted_;  // by age
  uint64_t num_admitted_ = 0, num_preemptions_ = 0, num_recomputed_tokens_ = 0;

  void admit();
  bool admit_one(int64_t& prefill_backlog);
  size_t choose_group(bool may_prefill) const;
  bool make_room(size_t group, size_t num_tokens);
  std::unique_ptr<Sequence> make_sequence(size_t group);
  void start(std::unique_ptr<Sequence> sequence);
  bool reserve(size_t running_index, int64_t num_positions);
  std::vector<Token> guess(Sequence& sequence, int64_t most);
  bool drop_prompt_pages();
  size_t youngest_in_no_step() const;
  void preempt(size_t running_index);
  void close(Group& group);
};

}  // namespace ropd::rollout
