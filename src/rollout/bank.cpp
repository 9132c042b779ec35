#include "rollout/bank.h"

#include <chrono>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"

namespace ropd::rollout {
namespace {

// Responses become durable in groups: one sync for each would be slower than a tiny model.
constexpr std::chrono::milliseconds kSyncInterval{500};

// SHA-256 of everything that determines the rows besides weights and sampling.
std::string requests_fingerprint(const EngineConfig& engine, std::span<const Request> requests) {
  std::string bytes;
  const auto put = [&](const auto* data, size_t count) {
    const uint64_t size = count * sizeof *data;
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes.append(reinterpret_cast<const char*>(data), size);
  };
  put(engine.eos_ids.data(), engine.eos_ids.size());
  bytes += engine.with_logprobs ? 'l' : '-';
  const std::vector<Token>* last_prompt = nullptr;
  for (const Request& request : requests) {
    put(request.query_id.data(), request.query_id.size());
    put(&request.sample, 1);
    put(&request.stream.seed, 1);
    put(request.stream.name.data(), request.stream.name.size());
    put(request.answer.data(), request.answer.size());
    if (request.prompt.get() != last_prompt) put(request.prompt->data(), request.prompt->size());
    last_prompt = request.prompt.get();
  }
  return sha256(bytes);
}

std::vector<io::RolloutKey> keys_of(std::span<const Request> requests) {
  std::vector<io::RolloutKey> keys;
  for (const Request& request : requests) keys.push_back({request.query_id, request.sample});
  return keys;
}

}  // namespace

std::vector<Request> make_requests(std::span<const PromptedQuery> queries, uint32_t first_sample,
                                   uint32_t count, const RandomStream& stream) {
  std::vector<Request> requests;
  for (const PromptedQuery& query : queries) {
    const auto prompt = std::make_shared<const std::vector<Token>>(query.prompt);
    for (uint32_t i = 0; i < count; ++i)
      requests.push_back({query.query_id, first_sample + i, prompt, stream, query.answer});
  }
  return requests;
}

io::BankMeta bank_meta(const Generator& generator, std::span<const Request> requests,
                       const BankOrigin& origin) {
  return bank_meta(generator.config(), generator.precision(), generator.policy_step(), requests, origin);
}

io::BankMeta bank_meta(const EngineConfig& engine, model::Precision precision, uint64_t policy_step,
                       std::span<const Request> requests, const BankOrigin& origin) {
  const SamplingConfig& sampling = engine.sampling;
  const RandomStream stream = requests.empty() ? RandomStream() : requests.front().stream;
  return {.model_fingerprint = origin.fingerprint,
          .model = origin.model,
          .policy_step = policy_step,
          .seed = stream.seed,
          .stream = stream.name,
          .temperature = sampling.temperature,
          .top_p = sampling.top_p,
          .top_k = sampling.greedy ? 1 : static_cast<uint64_t>(sampling.top_k),  // the same thing
          .max_response_tokens = static_cast<uint64_t>(engine.max_response_tokens),
          .precision = std::string(name_of(precision)),
          .requests_fingerprint = requests_fingerprint(engine, requests),
          .count = requests.size()};
}

BankResult make_bank(Generator& generator, std::span<const Request> requests, const Path& path,
                     const BankOrigin& origin, const BankOptions& options) {
  generator.check(requests);
  io::BankStream stream(path, keys_of(requests), bank_meta(generator, requests, origin),
                        {.vocab_size = generator.vocab_size()});
  BankResult result;
  const std::vector<size_t> missing = stream.missing();
  result.num_kept = requests.size() - missing.size();
  if (result.num_kept > 0)
    log_info(path.string(), ": ", result.num_kept, " of ", requests.size(), " responses are there, ",
             missing.empty() ? "nothing to sample" : "going on with the others");
  if (!missing.empty()) {
    std::vector<Request> wanted;
    for (const size_t index : missing) wanted.push_back(requests[index]);
    Progress progress(options.stage, wanted.size(), "tok");
    auto last_sync = std::chrono::steady_clock::now();
    uint64_t num_durable = 0;
    RunHooks hooks;
    hooks.on_done = [&](size_t, Rollout&& rollout) {
      if (options.check) options.check();
      if (options.decode) rollout.text = options.decode(rollout.response_ids);
      stream.add(rollout);
    };
    hooks.on_step = [&](const RunSummary& so_far) {
      const auto now = std::chrono::steady_clock::now();
      if (so_far.num_done > num_durable && now - last_sync >= kSyncInterval) {
        stream.sync();
        last_sync = now;
        num_durable = so_far.num_done;
      }
      progress.update(so_far.num_done, so_far.num_tokens, so_far.note());
    };
    if (options.on_token)
      hooks.on_token = [&](size_t index, Token token) { options.on_token(missing[index], token); };
    if (options.on_scores) {
      hooks.scores_top_k = options.scores_top_k;
      hooks.on_scores = [&](size_t index, Scores&& scores) {
        options.on_scores(missing[index], std::move(scores));
      };
    }
    result.run = generator.run(wanted, hooks);
    stream.sync();
    progress.update(result.run.num_done, result.run.num_tokens, result.run.note());
  }
  if (!result.run.was_stopped) stream.finish();
  result.is_finished = stream.is_finished();
  return result;
}

std::vector<Rollout> read_bank(const Path& path, const io::RolloutLimits& limits,
                               const std::string& fingerprint) {
  const auto meta = io::read_bank_meta(path);
  if (!meta)
    log_info(path.string(), ": no description beside it, so its model is not known");
  else if (!io::fingerprints_agree(meta->model_fingerprint, fingerprint))
    fail(path.string(), ": was sampled from another model (", meta->model, ", fingerprint ",
         meta->model_fingerprint.substr(0, 12), ", expected ", fingerprint.substr(0, 12), ")");
  return io::read_rollouts(path, limits);
}

}  // namespace ropd::rollout
