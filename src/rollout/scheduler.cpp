#include "rollout/scheduler.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/rng.h"

namespace ropd::rollout {
namespace {

constexpr size_t kNoGroup = static_cast<size_t>(-1);

void insert_by_age(std::vector<std::unique_ptr<Sequence>>& sequences, std::unique_ptr<Sequence> sequence) {
  const auto place =
      std::upper_bound(sequences.begin(), sequences.end(), sequence->age,
                       [](uint64_t age, const std::unique_ptr<Sequence>& other) { return age < other->age; });
  sequences.insert(place, std::move(sequence));
}

}  // namespace

int64_t longest_cached(int64_t prompt_tokens, const SchedulerConfig& config) {
  return std::min(prompt_tokens + config.max_response_tokens, config.max_positions) - 1;
}

Scheduler::Scheduler(model::KvCache& cache, std::span<const Request> requests, const SchedulerConfig& config)
    : cache_(cache), requests_(requests), config_(config) {
  assert(config.max_batch > 0 && config.prefill_chunk_tokens > 0);
}

void Scheduler::enlist(std::span<const size_t> requests) {
  for (const size_t index : requests) {
    const auto [place, is_new] = group_of_.try_emplace(requests_[index].prompt.get(), groups_.size());
    const size_t group = place->second;
    if (is_new) groups_.push_back(std::make_unique<Group>(cache_));
    // All of a prompt's requests had started before this one came.
    if (group < next_group_ && groups_[group]->num_started == groups_[group]->requests.size())
      open_groups_.push_back(group);
    groups_[group]->requests.push_back(index);
  }
  num_unstarted_ += requests.size();
}

void Scheduler::enlist_all() {
  std::vector<size_t> all(requests_.size());
  std::iota(all.begin(), all.end(), 0);
  enlist(all);
}

size_t Scheduler::room() const {
  const size_t taken_on = running_.size() + preempted_.size() + num_unstarted_;
  return static_cast<size_t>(config_.max_batch) - std::min(static_cast<size_t>(config_.max_batch), taken_on);
}

std::vector<Work> Scheduler::plan(int64_t workers) {
  admit();
  std::vector<Work> step;
  const size_t share = static_cast<size_t>((num_running() + workers - 1) / workers);
  int64_t prefill_left = config_.prefill_chunk_tokens, guesses_left = config_.rows_with_guesses;
  for (size_t i = 0; i < running_.size() && step.size() < share; ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.is_in_step) continue;
    int64_t num_rows = sequence.num_left();
    if (num_rows > 1) {
      num_rows = std::min(num_rows, prefill_left);
      prefill_left -= num_rows;
      if (num_rows == 0) continue;
    }
    // Only sequences behind this one, or itself, can be preempted here; what is planned stays.
    if (!reserve(i, sequence.num_cached + num_rows)) continue;
    sequence.is_in_step = true;
    step.push_back({&sequence, num_rows});
    guesses_left -= num_rows;
  }
  for (Work& work : step) {
    if (guesses_left <= 0) break;
    if (!work.reaches_end()) continue;
    work.guesses = guess(*work.sequence, guesses_left);
    guesses_left -= static_cast<int64_t>(work.guesses.size());
  }
  assert(!step.empty() || is_done() ||
         std::any_of(running_.begin(), running_.end(), [](const auto& other) { return other->is_in_step; }));
  return step;
}

void Scheduler::complete(std::span<const Work> step) {
  bool any_finished = false;
  for (const Work& work : step) {
    Sequence& sequence = *work.sequence;
    sequence.is_in_step = false;
    // All rows but those of wrong guesses; the newest token has not been run.
    sequence.num_cached =
        std::min(sequence.num_cached + work.num_rows + static_cast<int64_t>(work.guesses.size()),
                 static_cast<int64_t>(sequence.tokens.size()) - 1);
    any_finished = any_finished || sequence.is_finished;
    Group& group = *groups_[sequence.group];
    const int64_t shared_tokens = sequence.prompt_tokens - 1;
    if (group.leader == &sequence && sequence.num_cached >= shared_tokens) {
      group.leader = nullptr;
      // Without a page for the copy the next sample prefills the prompt again.
      if (group.is_waited_for() && cache_.free_pages() > 0) {
        group.pages.fork(sequence.pages, shared_tokens);
        group.is_ready = true;
      }
    }
  }
  if (!any_finished) return;
  std::erase_if(running_, [](const std::unique_ptr<Sequence>& sequence) { return sequence->is_finished; });
}

void Scheduler::admit() {
  if (preempted_.empty() && num_unstarted_ == 0) return;
  int64_t prefill_backlog = 0;
  for (const auto& sequence : running_)
    if (sequence->num_left() > 1) prefill_backlog += sequence->num_left();
  while (num_running() < config_.max_batch && admit_one(prefill_backlog)) {
  }
}

bool Scheduler::admit_one(int64_t& prefill_backlog) {
  std::unique_ptr<Sequence> sequence;
  if (!preempted_.empty()) {
    Sequence& next = *preempted_.front();
    // A sibling may be prefilling their prompt right now: its pages are worth waiting for.
    if (groups_[next.group]->leader || !make_room(next.group, next.tokens.size())) return false;
    sequence = std::move(preempted_.front());
    preempted_.erase(preempted_.begin());
    --groups_[sequence->group]->num_preempted;
  } else {
    const size_t group = choose_group(/*may_prefill=*/prefill_backlog < config_.prefill_chunk_tokens);
    if (group == kNoGroup) return false;
    if (!make_room(group, requests_[groups_[group]->requests.front()].prompt->size())) return false;
    sequence = make_sequence(group);
    if (group == next_group_) open_groups_.push_back(next_group_++);
    ++groups_[group]->num_started;
    --num_unstarted_;
  }
  Sequence& started = *sequence;
  start(std::move(sequence));
  if (started.num_left() > 1) prefill_backlog += started.num_left();
  return true;
}

size_t Scheduler::choose_group(bool may_prefill) const {
  size_t cold = kNoGroup;
  for (const size_t index : open_groups_) {
    const Group& group = *groups_[index];
    if (group.is_ready) return index;
    if (!group.leader && cold == kNoGroup) cold = index;
  }
  if (!may_prefill) return kNoGroup;
  if (cold != kNoGroup) return cold;
  return next_group_ < groups_.size() ? next_group_ : kNoGroup;
}

// Whether a sequence of this many tokens can start now, with a page to spare for each that runs already.
bool Scheduler::make_room(size_t group, size_t num_tokens) {
  const int64_t page_tokens = cache_.page_tokens();
  const auto has_room = [&] {
    int64_t needed = (static_cast<int64_t>(num_tokens) + page_tokens - 1) / page_tokens;
    if (groups_[group]->is_ready)
      needed -= (static_cast<int64_t>(requests_[groups_[group]->requests.front()].prompt->size()) - 1) /
                page_tokens;
    return cache_.free_pages() >= needed + num_running();
  };
  // What would run alone fits once nothing else holds pages.
  while (!has_room())
    if (!running_.empty() || !drop_prompt_pages()) return false;
  return true;
}

std::unique_ptr<Sequence> Scheduler::make_sequence(size_t group) {
  auto sequence = std::make_unique<Sequence>(cache_);
  sequence->group = group;
  sequence->age = num_admitted_++;
  sequence->request = groups_[group]->requests[groups_[group]->num_started];
  const Request& request = requests_[sequence->request];
  sequence->query_key = text_key(request.query_id);
  sequence->stream_seed = request.stream.derived_seed();
  sequence->tokens = *request.prompt;
  sequence->prompt_tokens = static_cast<int64_t>(request.prompt->size());
  sequence->max_tokens = longest_cached(sequence->prompt_tokens, config_) + 1;
  return sequence;
}

void Scheduler::start(std::unique_ptr<Sequence> sequence) {
  Group& group = *groups_[sequence->group];
  if (group.is_ready) {
    sequence->pages.fork(group.pages, sequence->prompt_tokens - 1);
    sequence->num_cached = sequence->prompt_tokens - 1;
  } else {
    group.leader = sequence.get();
  }
  if (!group.is_waited_for()) close(group);
  if (group.num_started == group.requests.size()) std::erase(open_groups_, sequence->group);
  insert_by_age(running_, std::move(sequence));
}

// Pages for the sequence up to num_positions; false when there are none now, or it had to give up its own.
bool Scheduler::reserve(size_t running_index, int64_t num_positions) {
  Sequence& sequence = *running_[running_index];
  while (sequence.pages.pages_missing(num_positions) > cache_.free_pages()) {
    if (drop_prompt_pages()) continue;
    const size_t youngest = youngest_in_no_step();
    const bool is_itself = youngest == running_index;
    if (is_itself && running_index + 1 < running_.size()) return false;  // younger ones are in steps: wait
    preempt(youngest);
    if (is_itself) return false;
  }
  sequence.pages.grow(num_positions);
  return true;
}

// With pages for them: those it has, and others while there is one to spare for each sequence that runs, so that nobody
// gives up pages for a guess.
std::vector<Token> Scheduler::guess(Sequence& sequence, int64_t most) {
  const int64_t length = static_cast<int64_t>(sequence.tokens.size()),
                most_that_fit = std::min(most, sequence.max_tokens - 1 - length);
  if (most_that_fit <= 0) return {};
  std::vector<Token> guesses = sequence.repeats.guess(sequence.tokens, static_cast<size_t>(most_that_fit));
  while (!guesses.empty()) {
    const int64_t num_positions = length + static_cast<int64_t>(guesses.size()),
                  missing = sequence.pages.pages_missing(num_positions);
    if (missing == 0) break;
    if (missing + num_running() <= cache_.free_pages()) {
      sequence.pages.grow(num_positions);
      break;
    }
    guesses.pop_back();
  }
  return guesses;
}

// There is one.
size_t Scheduler::youngest_in_no_step() const {
  size_t index = running_.size() - 1;
  while (running_[index]->is_in_step) --index;
  return index;
}

// Prompts kept for samples that wait can be prefilled again; the first that is found goes.
bool Scheduler::drop_prompt_pages() {
  for (const auto& group : groups_) {
    if (!group->is_ready) continue;
    close(*group);
    return true;
  }
  return false;
}

void Scheduler::close(Group& group) {
  group.pages.clear();
  group.is_ready = false;
}

void Scheduler::preempt(size_t running_index) {
  std::unique_ptr<Sequence> sequence = std::move(running_[running_index]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(running_index));
  Group& group = *groups_[sequence->group];
  if (group.leader == sequence.get()) group.leader = nullptr;
  ++group.num_preempted;
  ++num_preemptions_;
  num_recomputed_tokens_ += static_cast<uint64_t>(sequence->num_cached);
  sequence->pages.clear();
  sequence->num_cached = 0;
  insert_by_age(preempted_, std::move(sequence));
}

}  // namespace ropd::rollout
