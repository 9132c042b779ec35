#include "rollout/crew_generator.h"

#include <chrono>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "comm/lots.h"

namespace ropd::rollout {
namespace {

enum class Order : uint8_t { replace_weights, run, release };

// What determines responses; prompts that requests share are sent once and shared again.
void put_requests(ByteWriter& writer, std::span<const Request> requests) {
  std::unordered_map<const std::vector<Token>*, uint64_t> numbers;
  std::vector<const std::vector<Token>*> prompts;
  for (const Request& request : requests)
    if (numbers.try_emplace(request.prompt.get(), prompts.size()).second)
      prompts.push_back(request.prompt.get());
  writer.put(uint64_t{prompts.size()});
  for (const auto* prompt : prompts) writer.put(*prompt);
  writer.put(uint64_t{requests.size()});
  for (const Request& request : requests)
    writer.put(request.query_id)
        .put(request.sample)
        .put(numbers.at(request.prompt.get()))
        .put(request.stream.seed)
        .put(request.stream.name);
}

std::vector<Request> get_requests(ByteReader& reader) {
  std::vector<std::shared_ptr<const std::vector<Token>>> prompts;
  for (auto left = reader.get<uint64_t>(); left > 0; --left)
    prompts.push_back(std::make_shared<const std::vector<Token>>(reader.get<std::vector<Token>>()));
  std::vector<Request> requests;
  for (auto left = reader.get<uint64_t>(); left > 0; --left) {
    Request& request = requests.emplace_back();
    reader.get(request.query_id);
    reader.get(request.sample);
    request.prompt = prompts.at(reader.get<uint64_t>());
    reader.get(request.stream.seed);
    reader.get(request.stream.name);
  }
  return requests;
}

// What a request does not know of its response.
ByteWriter response_bytes(const Rollout& rollout) {
  ByteWriter writer;
  writer.put(rollout.response_ids).put(rollout.finish).put(rollout.policy_step).put(rollout.sampled_logprobs);
  return writer;
}

Rollout get_response(ByteReader& reader, const Request& request) {
  Rollout rollout;
  rollout.query_id = request.query_id;
  rollout.sample = request.sample;
  rollout.prompt_ids = *request.prompt;
  rollout.seed = request.stream.seed;
  rollout.answer = request.answer;
  reader.get(rollout.response_ids);
  reader.get(rollout.finish);
  reader.get(rollout.policy_step);
  reader.get(rollout.sampled_logprobs);
  return rollout;
}

// The student's side, which is all that sampling knows.
void put_scores(ByteWriter& writer, const Scores& scores) {
  writer.put(scores.candidates).put(scores.student_logprobs);
  writer.put(scores.sampled_logprobs).put(scores.student_entropy);
}

Scores get_scores(ByteReader& reader, const Request& request, uint32_t top_k) {
  Scores scores{.query_id = request.query_id, .sample = request.sample, .top_k = top_k};
  reader.get(scores.candidates);
  reader.get(scores.student_logprobs);
  reader.get(scores.sampled_logprobs);
  reader.get(scores.student_entropy);
  return scores;
}

// Room for so many requests, from whoever deals them out.
comm::LotRange up_to(size_t room) { return {.least = 1, .most = room}; }

std::vector<size_t> indices_of(const comm::Lot& lot) {
  std::vector<size_t> indices(lot.size());
  std::iota(indices.begin(), indices.end(), lot.begin);
  return indices;
}

void count_response(RunSummary& summary, const Rollout& rollout) {
  ++summary.num_done;
  summary.num_done_tokens += rollout.response_ids.size();
  summary.num_tokens += rollout.response_ids.size();
  summary.num_at_limit += rollout.finish == Finish::length;
}

// What a rank's run took beside the responses that it sent.
ByteWriter last_words(const RunSummary& summary) {
  ByteWriter writer;
  writer.put(summary.num_tokens - summary.num_done_tokens)
      .put(summary.num_steps)
      .put(summary.num_guesses)
      .put(summary.num_right_guesses)
      .put(summary.num_preemptions)
      .put(summary.num_recomputed_tokens)
      .put(summary.cache_bytes);
  return writer;
}

void add_last_words(RunSummary& summary, ByteReader& reader) {
  summary.num_tokens += reader.get<uint64_t>();
  summary.num_steps += reader.get<uint64_t>();
  summary.num_guesses += reader.get<uint64_t>();
  summary.num_right_guesses += reader.get<uint64_t>();
  summary.num_preemptions += reader.get<uint64_t>();
  summary.num_recomputed_tokens += reader.get<uint64_t>();
  summary.cache_bytes += reader.get<uint64_t>();
}

RunSummary sum_of(RunSummary own, const RunSummary& others) {
  own.num_done += others.num_done;
  own.num_done_tokens += others.num_done_tokens;
  own.num_at_limit += others.num_at_limit;
  own.num_tokens += others.num_tokens;
  own.num_steps += others.num_steps;
  own.num_guesses += others.num_guesses;
  own.num_right_guesses += others.num_right_guesses;
  own.num_preemptions += others.num_preemptions;
  own.num_recomputed_tokens += others.num_recomputed_tokens;
  own.cache_bytes += others.cache_bytes;
  return own;
}

}  // namespace

CrewGenerator::CrewGenerator(Generator& own, comm::Crew& crew, Bystanders bystanders)
    : own_(own),
      crew_(crew),
      bystanders_(std::move(bystanders)),
      duty_(crew.enlist([this](ByteReader& call) { serve(call); })) {}

void CrewGenerator::serve(ByteReader& call) {
  switch (call.get<Order>()) {
    case Order::replace_weights: {
      Policy policy;
      call.get(policy.is_initial);
      call.get(policy.step);
      return own_.replace_weights(policy);
    }
    case Order::run:
      return serve_run(call);
    case Order::release:
      return own_.release();
  }
}

void CrewGenerator::replace_weights(const Policy& policy) {
  ByteWriter order;
  order.put(Order::replace_weights).put(policy.is_initial).put(policy.step);
  const auto call =
      crew_.call(duty_, "weights of step " + std::to_string(policy.step) + " for sampling", order.bytes());
  own_.replace_weights(policy);
}

void CrewGenerator::release() {
  const auto call = crew_.call(duty_, "release", ByteWriter().put(Order::release).bytes());
  own_.release();
}

void CrewGenerator::serve_run(ByteReader& call) {
  const bool have_bystanders = call.get<bool>();
  const auto scores_top_k = call.get<std::optional<uint32_t>>();
  const auto requests = get_requests(call);
  comm::Taker taker(crew_.world());
  if (have_bystanders && bystanders_.is_one(crew_.world().rank())) {
    taker.finish(last_words({}));
    return bystanders_.serve();
  }
  RunHooks hooks;
  std::optional<Scores> scores;  // of the response that comes next
  hooks.on_done = [&](size_t index, Rollout&& rollout) {
    ByteWriter response = response_bytes(rollout);
    if (scores) put_scores(response, *scores);
    scores.reset();
    taker.send_result(index, response);
  };
  if (scores_top_k) {
    hooks.scores_top_k = *scores_top_k;
    hooks.on_scores = [&](size_t, Scores&& taken) { scores = std::move(taken); };
  }
  hooks.take = [&](size_t room, bool may_wait) {
    const auto lot = taker.take(up_to(room), may_wait);
    return lot ? std::optional(indices_of(*lot)) : std::nullopt;
  };
  const RunSummary summary = own_.run(requests, hooks);
  taker.finish(last_words(summary));
}

RunSummary CrewGenerator::run(std::span<const Request> requests, const RunHooks& hooks) {
  if (crew_.is_alone() || requests.empty()) return own_.run(requests, hooks);
  own_.check(requests);
  const auto begin = std::chrono::steady_clock::now();
  ByteWriter order;
  const bool have_bystanders = bystanders_.is_one && bystanders_.has_interest(requests.front());
  std::optional<uint32_t> scores_top_k;
  if (hooks.on_scores) scores_top_k = hooks.scores_top_k;
  order.put(Order::run).put(have_bystanders).put(scores_top_k);
  put_requests(order, requests);
  const auto call =
      crew_.call(duty_, "sampling at step " + std::to_string(own_.policy_step()), order.bytes());

  if (have_bystanders) bystanders_.begin();
  RunSummary own, others;  // under the dealer's mutex, as calling hooks
  const auto pass_on = [&](size_t index, Rollout&& rollout, std::optional<Scores>&& scores) {
    if (have_bystanders) bystanders_.on_done(rollout, scores ? &*scores : nullptr);
    if (scores) hooks.on_scores(index, std::move(*scores));
    hooks.on_done(index, std::move(rollout));
  };
  const auto tell = [&] {
    if (hooks.on_step) hooks.on_step(sum_of(own, others));
  };
  comm::Dealer dealer(crew_.world(), requests.size(),
                      {.on_result =
                           [&](size_t index, ByteReader& reader) {
                             Rollout rollout = get_response(reader, requests[index]);
                             std::optional<Scores> scores;
                             if (scores_top_k) scores = get_scores(reader, requests[index], *scores_top_k);
                             count_response(others, rollout);
                             pass_on(index, std::move(rollout), std::move(scores));
                             tell();
                           },
                       .on_end = [&](ByteReader& reader) { add_last_words(others, reader); }});
  RunHooks own_hooks;
  std::optional<Scores> own_scores;  // of the response that comes next
  own_hooks.on_done = [&](size_t index, Rollout&& rollout) {
    const std::lock_guard lock(dealer.mutex());
    pass_on(index, std::move(rollout), std::exchange(own_scores, std::nullopt));
  };
  if (scores_top_k) {
    own_hooks.scores_top_k = *scores_top_k;
    own_hooks.on_scores = [&](size_t, Scores&& taken) { own_scores = std::move(taken); };
  }
  own_hooks.on_token = hooks.on_token;
  own_hooks.on_step = [&](const RunSummary& so_far) {
    const std::lock_guard lock(dealer.mutex());
    own = so_far;
    tell();
  };
  own_hooks.take = [&](size_t room, bool) {
    const comm::Lot lot = dealer.take(up_to(room));
    return lot.empty() ? std::nullopt : std::optional(indices_of(lot));
  };
  const RunSummary own_end = own_.run(requests, own_hooks);
  dealer.finish();
  if (have_bystanders) bystanders_.end();
  RunSummary summary = sum_of(own_end, others);
  summary.was_stopped = summary.num_done < requests.size();
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return summary;
}

}  // namespace ropd::rollout
