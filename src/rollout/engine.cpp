#include "rollout/engine.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/stop.h"
#include "rollout/sampling_scores.h"

namespace ropd::rollout {
namespace {

void check_request(const Request& request, const ModelConfig& model) {
  const auto fail_request = [&](const auto&... parts) {
    fail("query ", request.query_id, ", sample ", request.sample, ": ", parts...);
  };
  if (!request.prompt || request.prompt->empty())
    fail_request("the prompt is empty; at least one token is needed");
  const int64_t length = static_cast<int64_t>(request.prompt->size());
  if (length >= model.max_position_embeddings)
    fail_request("the prompt has ", length, " tokens, the model's context (max_position_embeddings) is ",
                 model.max_position_embeddings, ": no room for a response");
  for (int64_t i = 0; i < length; ++i) {
    const Token id = (*request.prompt)[static_cast<size_t>(i)];
    if (id < 0 || id >= model.vocab_size)
      fail_request("prompt position ", i, " holds id ", id, ", outside the vocabulary of ", model.vocab_size,
                   " (tokens of another model?)");
  }
}

}  // namespace

int64_t batch_in_cache(double tokens_each, double token_bytes) {
  constexpr double kCacheBytes = 3 << 20;
  constexpr int64_t kWholeTiles = 6, kFewest = 2 * kWholeTiles, kMost = 8 * kWholeTiles;  // rows
  const double batch = std::min(kCacheBytes / (tokens_each * token_bytes), static_cast<double>(kMost));
  return std::max(kFewest, static_cast<int64_t>(batch) / kWholeTiles * kWholeTiles);
}

Engine::Engine(const model::Weights& weights, model::Precision precision, EngineConfig config,
               uint64_t policy_step)
    : config_(std::move(config)),
      decoder_(model::pack_weights(weights, precision), precision),
      policy_step_(policy_step) {
  config_.sampling.validate();
  if (config_.max_response_tokens <= 0)
    fail("the limit on response tokens must be > 0, got ", config_.max_response_tokens);
  if (config_.page_tokens <= 0 || config_.page_tokens % 32 != 0)
    fail("page_tokens must be a multiple of 32, got ", config_.page_tokens);
  // Steps of a small model are so short that large batches pay.
  if (config_.prefill_chunk_tokens == 0)
    config_.prefill_chunk_tokens = weights.execution.sharing == model::Sharing::sequences ? 4096 : 256;
  // The weights of a large model are read from memory, at a price that a few more rows change by little (1.1 times with
  // native bf16, twice with AVX2), but for experts, which rows choose apart.
  if (config_.rows_with_guesses < 0) {
    const bool is_large = weights.execution.sharing == model::Sharing::products;
    config_.rows_with_guesses = is_large && !weights.config.is_moe() ? 8 : 0;
  }
}

void Engine::replace_weights(const model::Weights& weights, uint64_t policy_step) {
  decoder_.replace_weights(model::pack_weights(weights, decoder_.precision()));
  policy_step_ = policy_step;
}

SchedulerConfig Engine::scheduler_config() const {
  return {.max_batch = std::max<int64_t>(config_.max_batch, 1),
          .prefill_chunk_tokens = config_.prefill_chunk_tokens,
          .max_response_tokens = config_.max_response_tokens,
          .max_positions = model_config().max_position_embeddings,
          .rows_with_guesses = config_.rows_with_guesses};
}

// As many pages as the budget holds, but no more than the requests can ever use at a time.
Engine::PageBudget Engine::choose_pages(std::span<const Request> requests) const {
  const uint64_t page_bytes = model::KvCache::page_bytes(model_config(), precision(), config_.page_tokens);
  const uint64_t budget = config_.memory_bytes > 0 ? config_.memory_bytes : usable_bytes(read_memory_info());
  const int64_t affordable =
      static_cast<int64_t>(std::min<uint64_t>(budget / page_bytes, std::numeric_limits<int32_t>::max()));
  int64_t useful = 0, longest = 0;
  for (const Request& request : requests) {
    const int64_t tokens = longest_cached(static_cast<int64_t>(request.prompt->size()), scheduler_config());
    const int64_t pages = (tokens + config_.page_tokens - 1) / config_.page_tokens;
    longest = std::max(longest, pages);
    // Its own, a copy of the prompt's last page, and one to spare (Scheduler::make_room).
    if (useful < affordable) useful += pages + 2;
  }
  if (affordable < longest)
    fail("rollout memory: ", format_bytes(static_cast<double>(budget)),
         config_.memory_bytes == 0 ? " free after the reserve" : " given", ", one response of up to ",
         longest * config_.page_tokens, " tokens needs ",
         format_bytes(static_cast<double>(static_cast<uint64_t>(longest) * page_bytes)),
         " (raise memory_gb or lower the limit on response tokens)");
  return {std::min(affordable, std::max(useful, longest)), budget};
}

int64_t Engine::choose_batch(const RunSummary& so_far, std::span<const Request> requests,
                             int64_t workers) const {
  constexpr int64_t kLarge = 96;  // enough to share the weights of a large model
  if (config_.max_batch > 0) return config_.max_batch;
  if (decoder_.weights().execution.sharing == model::Sharing::products) return kLarge;
  const int64_t prompt = static_cast<int64_t>(requests.front().prompt->size()),
                longest = longest_cached(prompt, scheduler_config());
  const double response =
      so_far.num_done > 0 ? static_cast<double>(so_far.num_done_tokens) / static_cast<double>(so_far.num_done)
                          : static_cast<double>(longest - prompt) / 2;
  const uint64_t page_bytes = model::KvCache::page_bytes(model_config(), precision(), config_.page_tokens);
  return workers * batch_in_cache(static_cast<double>(prompt) + response,
                                  static_cast<double>(page_bytes) / static_cast<double>(config_.page_tokens));
}

void Engine::check(std::span<const Request> requests) const {
  const std::vector<Token>* last_prompt = nullptr;
  for (const Request& request : requests) {
    if (!request.prompt || request.prompt.get() != last_prompt) check_request(request, model_config());
    last_prompt = request.prompt.get();
  }
  choose_pages(requests);
}

// What the workers of a run share.
struct Engine::Run {
  std::span<const Request> requests;
  const RunHooks& hooks;
  std::chrono::steady_clock::time_point begin;
  model::KvCache& cache;
  std::optional<SamplingScores> scores = {};  // where they are wanted
  std::mutex mutex = {};  // of everything below, of which pages of the cache are whose, and of calling hooks
  std::condition_variable step_ended = {};
  Scheduler& scheduler;
  RunSummary& summary;
  int64_t num_workers = 1;
  int64_t steps_left = 0;    // of this round
  bool is_dealt_out = true;  // no more requests are to come
  bool has_failed = false;
  bool is_finished() const { return is_dealt_out && scheduler.is_done(); }
  bool is_over() const { return has_failed || summary.was_stopped || is_finished(); }
  bool is_round_over() const { return steps_left == 0 || is_over(); }
};

RunSummary Engine::run(std::span<const Request> requests, const RunHooks& hooks) {
  RunSummary summary;
  if (requests.empty()) return summary;
  check(requests);
  const auto begin = std::chrono::steady_clock::now();
  const auto [num_pages, budget_bytes] = choose_pages(requests);
  summary.cache_bytes = static_cast<uint64_t>(num_pages) *
                        model::KvCache::page_bytes(model_config(), precision(), config_.page_tokens);
  log_info("rollout memory: ", format_bytes(static_cast<double>(budget_bytes)),
           config_.memory_bytes == 0 ? " free" : " given", ", keys and values take up to ",
           format_bytes(static_cast<double>(summary.cache_bytes)), " (",
           format_count(static_cast<double>(num_pages * config_.page_tokens)), " tokens)");
  model::KvCache cache(model_config(), precision(), num_pages, config_.page_tokens);
  Scheduler scheduler(cache, requests, scheduler_config());
  if (!hooks.take) scheduler.enlist_all();
  Run run{.requests = requests,
          .hooks = hooks,
          .begin = begin,
          .cache = cache,
          .scheduler = scheduler,
          .summary = summary,
          .is_dealt_out = !hooks.take};
  if (hooks.on_scores) run.scores.emplace(requests.size(), hooks.scores_top_k);
  const model::Execution execution = decoder_.weights().execution;
  const size_t most_in_flight =
      config_.max_batch > 0 ? static_cast<size_t>(config_.max_batch) : requests.size();
  DecodeRounds rounds(execution, config_.lost_share);
  while (!run.is_over()) {
    // Threads of a small model are parted once, for all that is to come.
    const size_t sequences = execution.sharing == model::Sharing::products
                                 ? static_cast<size_t>(scheduler.num_running())
                                 : std::min(requests.size(), most_in_flight);
    run_round(run, rounds.next(sequences));
  }
  return summary;
}

void Engine::run_round(Run& run, const DecodeRounds::Round& round) {
  while (workers_.size() < round.num_workers) workers_.push_back(std::make_unique<Worker>());
  run.num_workers = static_cast<int64_t>(round.num_workers);
  run.steps_left = round.num_steps;
  round.run([&](size_t worker) { run_steps(run, *workers_[worker]); });
}

void Engine::run_steps(Run& run, Worker& worker) const {
  std::unique_lock lock(run.mutex);
  try {
    while (true) {
      while (!begin_step(run, worker)) {
        if (run.is_round_over()) return;
        run.step_ended.wait(lock);
      }
      lock.unlock();
      compute_step(run, worker);
      lock.lock();
      if (run.has_failed) return;  // hooks hear no more
      finish_step(run, worker);
      run.step_ended.notify_all();
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    run.has_failed = true;
    run.step_ended.notify_all();
    throw;
  }
}

void Engine::take_requests(Run& run) {
  const size_t room = run.scheduler.room();
  if (run.is_dealt_out || room == 0) return;
  const auto taken = run.hooks.take(room, /*may_wait=*/run.scheduler.is_done());
  run.is_dealt_out = !taken;
  if (taken) run.scheduler.enlist(*taken);
}

// False when the round or the run is over, or when there is nothing to do before a step of another worker has
// ended.
bool Engine::begin_step(Run& run, Worker& worker) const {
  if (run.steps_left == 0) return false;
  run.summary.was_stopped = !run.is_finished() && stop_requested();
  if (run.is_over()) return false;
  run.scheduler.limit_batch(choose_batch(run.summary, run.requests, run.num_workers));
  take_requests(run);
  if (run.is_over()) return false;
  worker.step = run.scheduler.plan(run.num_workers);
  if (worker.step.empty()) return false;
  --run.steps_left;
  return true;
}

void Engine::compute_step(Run& run, Worker& worker) const {
  worker.rows.clear();
  for (const Work& work : worker.step) {
    const Sequence& sequence = *work.sequence;
    worker.rows.push_back(
        {.tokens = std::span(sequence.tokens)
                       .subspan(static_cast<size_t>(sequence.num_cached), static_cast<size_t>(work.num_rows)),
         .first_position = sequence.num_cached,
         .pages = sequence.pages.data(),
         .wants_logits = work.reaches_end(),
         .guesses = work.guesses});
  }
  worker.draws.assign(worker.step.size(), {});
  const size_t vocabulary = static_cast<size_t>(model_config().vocab_size);
  decoder_.step(worker.memory, run.cache, worker.rows, [&](size_t i, std::span<float> logits) {
    const Work& work = worker.step[i];
    const Sequence& sequence = *work.sequence;
    const Request& request = run.requests[sequence.request];
    const int64_t position = static_cast<int64_t>(sequence.tokens.size()) - sequence.prompt_tokens;
    for (size_t row = 0; row <= work.guesses.size(); ++row) {
      const std::span<float> row_logits = logits.subspan(row * vocabulary, vocabulary);
      const Draw drawn = draw(row_logits, config_.sampling,
                              {.seed = sequence.stream_seed,
                               .query = sequence.query_key,
                               .sample = request.sample,
                               .position = static_cast<uint32_t>(position + static_cast<int64_t>(row))});
      worker.draws[i].push_back(drawn);
      if (!drawn.is_valid) return;
      if (run.scores) run.scores->add(sequence.request, drawn.token, row_logits);
      // Behind a wrong guess rows belong to another response.
      if (row < work.guesses.size() && (drawn.token != work.guesses[row] || ends_response(drawn.token)))
        return;
    }
  });
}

bool Engine::ends_response(Token token) const {
  return std::find(config_.eos_ids.begin(), config_.eos_ids.end(), token) != config_.eos_ids.end();
}

void Engine::finish_step(Run& run, Worker& worker) const {
  RunSummary& summary = run.summary;
  ++summary.num_steps;
  for (size_t i = 0; i < worker.step.size(); ++i) {
    for (const Draw& drawn : worker.draws[i]) append(run, *worker.step[i].sequence, drawn);
    summary.num_guesses += worker.step[i].guesses.size();
    if (!worker.draws[i].empty()) summary.num_right_guesses += worker.draws[i].size() - 1;
  }
  run.scheduler.complete(worker.step);
  summary.num_preemptions = run.scheduler.num_preemptions();
  summary.num_recomputed_tokens = run.scheduler.num_recomputed_tokens();
  summary.num_in_flight = static_cast<uint64_t>(run.scheduler.num_running());
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - run.begin).count();
  if (run.hooks.on_step) run.hooks.on_step(summary);
}

void Engine::append(Run& run, Sequence& sequence, const Draw& drawn) const {
  const Request& request = run.requests[sequence.request];
  RunSummary& summary = run.summary;
  const int64_t position = static_cast<int64_t>(sequence.tokens.size()) - sequence.prompt_tokens;
  if (!drawn.is_valid)
    fail("query ", request.query_id, ", sample ", request.sample, ", response position ", position,
         ": the logits hold NaN or infinity (weights of step ", policy_step_, " diverged or damaged?)");
  sequence.tokens.push_back(drawn.token);
  if (config_.with_logprobs) sequence.logprobs.push_back(drawn.logprob);
  ++summary.num_tokens;
  if (run.hooks.on_token) run.hooks.on_token(sequence.request, drawn.token);
  const bool is_eos = ends_response(drawn.token);
  if (!is_eos && static_cast<int64_t>(sequence.tokens.size()) < sequence.max_tokens) return;

  sequence.is_finished = true;
  ++summary.num_done;
  summary.num_done_tokens += static_cast<uint64_t>(position) + 1;
  if (!is_eos) ++summary.num_at_limit;
  Rollout rollout;
  rollout.query_id = request.query_id;
  rollout.sample = request.sample;
  rollout.prompt_ids = *request.prompt;
  rollout.response_ids.assign(sequence.tokens.begin() + sequence.prompt_tokens, sequence.tokens.end());
  rollout.finish = is_eos ? Finish::eos : Finish::length;
  rollout.policy_step = policy_step_;
  rollout.seed = request.stream.seed;
  rollout.answer = request.answer;
  rollout.sampled_logprobs = std::move(sequence.logprobs);
  if (run.scores) {
    Scores scores = run.scores->take(sequence.request);
    scores.query_id = request.query_id;
    scores.sample = request.sample;
    run.hooks.on_scores(sequence.request, std::move(scores));
  }
  run.hooks.on_done(sequence.request, std::move(rollout));
}

std::string RunSummary::note() const {
  if (num_done == 0) return std::to_string(num_in_flight) + " in flight";
  const auto share = [&](uint64_t part) { return static_cast<double>(part) / static_cast<double>(num_done); };
  std::ostringstream text;
  text << "mean length " << format_count(std::round(share(num_done_tokens))) << ", "
       << std::lround(100 * share(num_at_limit)) << "% at the limit, " << num_in_flight << " in flight";
  return text.str();
}

}  // namespace ropd::rollout
