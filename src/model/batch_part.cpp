#include "model/batch_part.h"

#include <algorithm>
#include <tuple>

namespace ropd::model {

AttendedSequences BatchPart::sequences_in(size_t layer) const {
  AttendedSequences sequences{.begins = batch.sequence_begins, .before = {}, .own = {}};
  for (SharedPrefix* const prefix : before)
    sequences.before.push_back(prefix ? &prefix->layers[layer] : nullptr);
  for (SharedPrefix* const prefix : own) sequences.own.push_back(&prefix->layers[layer]);
  return sequences;
}

std::vector<BatchPart> cut_into_parts(const PackedBatch& batch, int64_t count,
                                      std::vector<SharedPrefix>& prefixes) {
  const std::vector<bool> is_prefix = batch.is_prefix();
  std::vector<size_t> index_of(is_prefix.size());  // among the prefixes
  size_t num_prefixes = 0;
  for (size_t s = 0; s < is_prefix.size(); ++s) index_of[s] = is_prefix[s] ? num_prefixes++ : 0;
  if (prefixes.size() < num_prefixes) prefixes.resize(num_prefixes);

  const std::vector<int64_t> cuts = cut_evenly(batch, count);
  std::vector<BatchPart> parts;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    BatchPart part{.batch = batch.part(cuts[i], cuts[i + 1]),
                   .first_row = batch.sequence_begins[static_cast<size_t>(cuts[i])],
                   .before = {},
                   .own = {}};
    for (auto s = static_cast<size_t>(cuts[i]); num_prefixes > 0 && s < static_cast<size_t>(cuts[i + 1]);
         ++s) {
      const int64_t before = batch.prefix_of[s];
      part.before.push_back(
          before == PackedBatch::kNoPrefix ? nullptr : &prefixes[index_of[static_cast<size_t>(before)]]);
      if (is_prefix[s]) part.own.push_back(&prefixes[index_of[s]]);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

Attend part_attention(const BatchPart& part, size_t layer, const ModelConfig& config) {
  return [&part, layer, shape = attention_shape(config)](std::span<float> out, std::span<float> log_sum_exp,
                                                         std::span<const float> q, std::span<const float> k,
                                                         std::span<const float> v) {
    const AttendedSequences sequences = part.sequences_in(layer);
    kernels::attention(out, log_sum_exp, q, k, v, sequences.begins, shape, sequences.shared_keys());
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
      for (auto [to, from, grad] :
           {std::tuple{&shared.k, k, &shared.grad_k}, std::tuple{&shared.v, v, &shared.grad_v}}) {
        to->resize(size);
        std::copy_n(from.data() + first, size, to->data());
        grad->resize(size);
        grad->fill(0);
      }
    }
  };
}

}  // namespace ropd::model
