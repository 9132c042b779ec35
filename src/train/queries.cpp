#include "train/queries.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "io/dataset.h"
#include "train/query_operations.h"

namespace ropd::train {

QuerySet load_queries(const TrainConfig& config, const text::PromptRenderer& renderer) {
  std::vector<Query> all = io::read_dataset(config.data.queries).queries;
  QuerySet set;
  set.num_in_file = all.size();
  const auto prompts = renderer.render_all(all);
  std::vector<Query> short_enough;
  std::unordered_map<std::string, size_t> index_of;
  for (size_t i = 0; i < all.size(); ++i) {
    if (prompts[i].size() > config.data.max_prompt_tokens) continue;
    index_of[all[i].id] = i;
    short_enough.push_back(all[i]);
  }
  set.num_too_long = all.size() - short_enough.size();
  if (set.num_too_long > 0)
    log_info(config.data.queries, ": ", set.num_too_long, " of ", all.size(),
             " queries dropped, their prompts exceed ", config.data.max_prompt_tokens, " tokens");
  if (short_enough.empty())
    fail(config.data.queries, ": no query is left of ", all.size(), ", all prompts exceed ",
         config.data.max_prompt_tokens, " tokens (data.max_prompt_tokens)");
  const auto selection = query_selection(config);
  auto chosen = selection ? select_queries(short_enough, *selection) : short_enough;
  chosen = order_queries(std::move(chosen), config.data.order_seed);
  std::string identity;
  for (Query& query : chosen) {
    const auto& prompt = prompts[index_of.at(query.id)];
    identity += query.id + '\0' + query.answer + '\0';
    identity.append(reinterpret_cast<const char*>(prompt.data()), prompt.size() * sizeof(Token));
    set.queries.push_back({std::move(query), std::make_shared<const std::vector<Token>>(prompt)});
  }
  set.fingerprint = sha256(identity);
  return set;
}

rollout::Request request_at(const QuerySet& set, uint64_t position, const RandomStream& stream) {
  const auto& [query, prompt] = set.queries[position % set.queries.size()];
  return {query.id, static_cast<uint32_t>(position / set.queries.size()), prompt, stream, query.answer};
}

std::vector<rollout::Request> take_requests(const QuerySet& set, uint64_t position, uint64_t count,
                                            const RandomStream& stream, bool grouped) {
  std::vector<uint64_t> positions(count);
  for (uint64_t i = 0; i < count; ++i) positions[i] = position + i;
  if (grouped)
    std::stable_sort(positions.begin(), positions.end(),
                     [&](uint64_t a, uint64_t b) { return a % set.queries.size() < b % set.queries.size(); });
  std::vector<rollout::Request> requests;
  for (const uint64_t p : positions) requests.push_back(request_at(set, p, stream));
  return requests;
}

}  // namespace ropd::train
