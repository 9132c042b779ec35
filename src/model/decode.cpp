#include "model/decode.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>

#include "base/parallel.h"
#include "kernels/embedding.h"
#include "kernels/rms_norm.h"

namespace ropd::model {
namespace {

constexpr size_t kLogitsBytes = size_t{48} << 20;  // logits of the rows that are sampled together

// Keys are written by the task that attends to them, so no group may read a page that another one writes.
[[maybe_unused]] bool write_pages_of_their_own(std::span<const DecodeRows> groups, int64_t page_tokens) {
  std::unordered_map<int32_t, size_t> writers;
  const auto end_of = [](const DecodeRows& group) {
    return group.first_position + static_cast<int64_t>(group.tokens.size());
  };
  for (size_t g = 0; g < groups.size(); ++g)
    for (int64_t page = groups[g].first_position / page_tokens; page * page_tokens < end_of(groups[g]);
         ++page)
      if (!writers.emplace(groups[g].pages[page], g).second) return false;
  for (size_t g = 0; g < groups.size(); ++g)
    for (int64_t page = 0; page * page_tokens < end_of(groups[g]); ++page)
      if (const auto writer = writers.find(groups[g].pages[page]);
          writer != writers.end() && writer->second != g)
        return false;
  return true;
}

}  // namespace

Decoder::Decoder(Weights weights, Precision precision)
    : weights_(std::move(weights)), precision_(precision) {}

void Decoder::step(DecodeMemory& memory, KvCache& cache, std::span<const DecodeRows> groups,
                   const LogitsConsumer& consume) const {
  assert(write_pages_of_their_own(groups, cache.page_tokens()));
  const ModelConfig& c = weights_.config;
  const size_t width = static_cast<size_t>(c.hidden_size);
  std::vector<Token> tokens;
  std::vector<int32_t> positions;
  std::vector<kernels::PagedRows> rows;
  int64_t longest = 0;
  for (const DecodeRows& group : groups) {
    tokens.insert(tokens.end(), group.tokens.begin(), group.tokens.end());
    for (size_t i = 0; i < group.tokens.size(); ++i)
      positions.push_back(static_cast<int32_t>(group.first_position + i));
    rows.push_back({group.pages, group.first_position, static_cast<int64_t>(group.tokens.size())});
    longest = std::max(longest, group.first_position + static_cast<int64_t>(group.tokens.size()));
  }
  if (tokens.empty()) return;

  Workspace& workspace = memory.workspace;
  Buffer& x = workspace.x;
  x.resize(tokens.size() * width);
  kernels::embedding(x, tokens, weights_.embedding.stored);
  const BlockContext context{c, workspace.rope_for(c, longest), positions, precision_,
                             /*for_gradient=*/false};
  const kernels::AttentionShape shape = attention_shape(c);
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const kernels::KvPageView pages = cache.layer(static_cast<int64_t>(i));
    block(x, workspace.trace, workspace.scratch, workspace.merged.of(weights_.layers[i], precision_), context,
          [&](std::span<float> out, std::span<float>, std::span<const float> q, std::span<const float> k,
              std::span<const float> v) { kernels::paged_attention(out, pages, q, k, v, rows, shape); });
  }

  // Only the last token of a group is sampled from; the head is by far the widest product.
  std::vector<size_t> wanted, last_row;
  size_t row = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    row += groups[g].tokens.size();
    if (groups[g].wants_logits) {
      wanted.push_back(g);
      last_row.push_back(row - 1);
    }
  }
  memory.last_rows.resize(wanted.size() * width);
  for (size_t i = 0; i < wanted.size(); ++i)
    std::copy_n(x.data() + last_row[i] * width, width, memory.last_rows.data() + i * width);
  memory.hidden.resize(memory.last_rows.size());
  workspace.trace.input_inv_rms.resize(wanted.size());
  kernels::rms_norm(memory.hidden, workspace.trace.input_inv_rms, memory.last_rows, weights_.final_norm,
                    static_cast<float>(c.rms_norm_eps));
  const size_t vocabulary = static_cast<size_t>(c.vocab_size);
  const size_t chunk = std::max<size_t>(1, kLogitsBytes / (vocabulary * sizeof(float)));
  for (size_t begin = 0; begin < wanted.size(); begin += chunk) {
    const size_t count = std::min(chunk, wanted.size() - begin);
    memory.logits.resize(count * vocabulary);
    weights_.head.apply(
        memory.logits, std::as_const(memory.hidden).span().subspan(begin * width, count * width), precision_);
    constexpr int64_t kWorkPerLogit = 8;
    parallel_tasks(
        count,
        [&](size_t i, size_t) {
          consume(wanted[begin + i], memory.logits.span().subspan(i * vocabulary, vocabulary));
        },
        kWorkPerLogit * static_cast<int64_t>(count * vocabulary));
  }
}

}  // namespace ropd::model
