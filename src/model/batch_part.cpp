#include "model/batch_part.h"

#include <algorithm>
#include <utility>

namespace ropd::model {

std::vector<BatchPart> cut_into_parts(const PackedBatch& batch, int64_t tokens,
                                      std::vector<SharedPrefix>& prefixes) {
  const std::vector<bool> is_prefix = batch.is_prefix();
  std::vector<size_t> index_of(is_prefix.size());  // among the prefixes
  size_t num_prefixes = 0;
  for (size_t s = 0; s < is_prefix.size(); ++s) index_of[s] = is_prefix[s] ? num_prefixes++ : 0;
  if (prefixes.size() < num_prefixes) prefixes.resize(num_prefixes);

  std::vector<BatchPart> parts;
  for (size_t first = 0, next; first < is_prefix.size(); first = next) {
    for (next = first + 1; next < is_prefix.size() && is_prefix[next] == is_prefix[first]; ++next)
      if (batch.sequence_begins[next + 1] - batch.sequence_begins[first] > tokens) break;
    BatchPart part{.batch = batch.part(static_cast<int64_t>(first), static_cast<int64_t>(next)),
                   .first_row = batch.sequence_begins[first],
                   .before = {},
                   .own = {}};
    for (size_t s = first; num_prefixes > 0 && s < next; ++s) {
      const int64_t before = batch.prefix_of[s];
      part.before.push_back(
          before == PackedBatch::kNoPrefix ? nullptr : &prefixes[index_of[static_cast<size_t>(before)]]);
      if (is_prefix[s]) part.own.push_back(&prefixes[index_of[s]]);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

Attend packed_attention(const PackedBatch& batch, const ModelConfig& config) {
  return [&batch, shape = attention_shape(config)](std::span<float> out, std::span<float> log_sum_exp,
                                                   std::span<const float> q, std::span<const float> k,
                                                   std::span<const float> v) {
    std::vector<kernels::SharedKeys> shared(batch.prefix_of.size());
    for (size_t s = 0; s < shared.size(); ++s)
      if (const int64_t prefix = batch.prefix_of[s]; prefix != PackedBatch::kNoPrefix) {
        const int64_t at =
            batch.sequence_begins[static_cast<size_t>(prefix)] * shape.num_kv_heads * shape.head_dim;
        shared[s] = {k.data() + at, v.data() + at, batch.length(prefix)};
      }
    kernels::attention(out, log_sum_exp, q, k, v, batch.sequence_begins, shape, shared);
  };
}

Attend part_attention(const BatchPart& part, size_t layer, const ModelConfig& config) {
  return [&part, layer, shape = attention_shape(config)](std::span<float> out, std::span<float> log_sum_exp,
                                                         std::span<const float> q, std::span<const float> k,
                                                         std::span<const float> v) {
    std::vector<kernels::SharedKeys> shared(part.before.size());
    for (size_t s = 0; s < shared.size(); ++s)
      if (const SharedPrefix* const prefix = part.before[s]) {
        const PrefixLayer& keys = prefix->layers[layer];
        shared[s] = {keys.k.data(), keys.v.data(), keys.length};
      }
    kernels::attention(out, log_sum_exp, q, k, v, part.batch.sequence_begins, shape, shared);
  };
}

Attend sharing_attention(const BatchPart& part, size_t layer, const ModelConfig& config) {
  for (SharedPrefix* const prefix : part.own)
    prefix->layers.resize(std::max(prefix->layers.size(), layer + 1));
  return [&part, layer, attend = part_attention(part, layer, config)](
             std::span<float> out, std::span<float> log_sum_exp, std::span<const float> q,
             std::span<const float> k, std::span<const float> v) {
    attend(out, log_sum_exp, q, k, v);
    const size_t width = k.size() / part.batch.tokens.size();
    for (size_t s = 0; s < part.own.size(); ++s) {
      PrefixLayer& shared = part.own[s]->layers[layer];
      shared.length = part.batch.length(static_cast<int64_t>(s));
      const size_t first = static_cast<size_t>(part.batch.sequence_begins[s]) * width,
                   size = static_cast<size_t>(shared.length) * width;
      for (auto [to, from] : {std::pair{&shared.k, k}, std::pair{&shared.v, v}}) {
        to->resize(size);
        std::copy_n(from.data() + first, size, to->data());
      }
    }
  };
}

}  // namespace ropd::model
