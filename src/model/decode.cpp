#include "model/decode.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>

#include "base/parallel.h"
#include "kernels/embedding.h"
#include "kernels/rms_norm.h"
#include "model/batch.h"

namespace ropd::model {
namespace {

constexpr size_t kLogitsBytes = size_t{48} << 20;  // logits of the rows that are sampled together

// Keys are written by the task that attends to them, so no group may read a page that another one writes.
[[maybe_unused]] bool write_pages_of_their_own(std::span<const DecodeRows> groups, int64_t page_tokens) {
  std::unordered_map<int32_t, size_t> writers;
  const auto end_of = [](const DecodeRows& group) {
    return group.first_position + static_cast<int64_t>(group.num_rows());
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
    const int64_t num_rows = static_cast<int64_t>(group.num_rows());
    tokens.insert(tokens.end(), group.tokens.begin(), group.tokens.end());
    tokens.insert(tokens.end(), group.guesses.begin(), group.guesses.end());
    for (int64_t i = 0; i < num_rows; ++i)
      positions.push_back(static_cast<int32_t>(group.first_position + i));
    rows.push_back({group.pages, group.first_position, num_rows});
    longest = std::max(longest, group.first_position + num_rows);
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

  // Only the last rows of a group are sampled from; the head is by far the widest product.
  struct Wanted {
    size_t group, first_row, count;
    size_t begin;  // among the rows that are kept
  };
  std::vector<Wanted> wanted;
  size_t row = 0, num_wanted = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    row += groups[g].num_rows();
    if (!groups[g].wants_logits) continue;
    const size_t count = 1 + groups[g].guesses.size();
    wanted.push_back({g, row - count, count, num_wanted});
    num_wanted += count;
  }
  memory.last_rows.resize(num_wanted * width);
  for (const Wanted& last : wanted)
    std::copy_n(x.data() + last.first_row * width, last.count * width,
                memory.last_rows.data() + last.begin * width);
  memory.hidden.resize(num_wanted * width);
  workspace.trace.input_inv_rms.resize(num_wanted);
  kernels::rms_norm(memory.hidden, workspace.trace.input_inv_rms, memory.last_rows, weights_.final_norm,
                    static_cast<float>(c.rms_norm_eps));
  const size_t vocabulary = static_cast<size_t>(c.vocab_size);
  const int64_t rows_at_once = static_cast<int64_t>(kLogitsBytes / (vocabulary * sizeof(float)));
  const auto rows_of = [&](size_t i) { return static_cast<int64_t>(wanted[i].count); };
  for (const auto& [first, last] : pack_in_order(wanted.size(), rows_at_once, rows_of)) {
    const size_t begin = wanted[first].begin, count = wanted[last - 1].begin + wanted[last - 1].count - begin;
    memory.logits.resize(count * vocabulary);
    weights_.head.apply(
        memory.logits, std::as_const(memory.hidden).span().subspan(begin * width, count * width), precision_);
    constexpr int64_t kWorkPerLogit = 8;
    parallel_tasks(
        last - first,
        [&, first = first](size_t i, size_t) {
          const Wanted& of = wanted[first + i];
          consume(of.group,
                  memory.logits.span().subspan((of.begin - begin) * vocabulary, of.count * vocabulary));
        },
        kWorkPerLogit * static_cast<int64_t>(count * vocabulary));
  }
}

}  // namespace ropd::model
