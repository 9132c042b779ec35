#include "model/forward.h"

#include <functional>

#include "base/error.h"
#include "kernels/embedding.h"
#include "kernels/rms_norm.h"

namespace ropd::model {
namespace {

// hidden [T, D] of sequences that go through the layers together.
void forward_together(std::span<float> hidden, const Weights& weights, const PackedBatch& batch,
                      Precision precision, Workspace& workspace,
                      const std::function<Attend(size_t layer)>& attention_in) {
  const ModelConfig& c = weights.config;
  Buffer& x = workspace.x;
  x.resize(batch.tokens.size() * static_cast<size_t>(c.hidden_size));
  kernels::embedding(x, batch.tokens, weights.embedding.stored);
  const BlockContext context{c, workspace.rope_for(c, batch.num_positions()), batch.positions, precision,
                             /*for_gradient=*/false};
  for (size_t i = 0; i < weights.layers.size(); ++i)
    block(x, workspace.trace, workspace.scratch, workspace.merged.of(weights.layers[i], precision), context,
          attention_in(i));
  workspace.trace.input_inv_rms.resize(batch.tokens.size());
  kernels::rms_norm(hidden, workspace.trace.input_inv_rms, x, weights.final_norm,
                    static_cast<float>(c.rms_norm_eps));
}

}  // namespace

void check_batch(const PackedBatch& batch, const ModelConfig& config) {
  for (int64_t s = 0; s < batch.num_sequences(); ++s) {
    const int64_t begin = batch.sequence_begins[static_cast<size_t>(s)],
                  end = batch.sequence_begins[static_cast<size_t>(s) + 1];
    for (int64_t t = begin; t < end; ++t) {
      const auto at = static_cast<size_t>(t);
      if (batch.positions[at] >= config.max_position_embeddings)
        fail("sequence ", s, ": ", batch.positions[static_cast<size_t>(end) - 1] + 1,
             " tokens, the model has max_position_embeddings = ", config.max_position_embeddings);
      if (batch.tokens[at] < 0 || batch.tokens[at] >= config.vocab_size)
        fail("sequence ", s, ", position ", batch.positions[at], ": id ", batch.tokens[at],
             " is outside the vocabulary of ", config.vocab_size, " (tokens of another model?)");
    }
  }
}

void forward(std::span<float> hidden, const Weights& weights, const PackedBatch& batch, Precision precision,
             Workspace& workspace) {
  const ModelConfig& c = weights.config;
  check_batch(batch, c);
  if (weights.execution.sharing == Sharing::products) {  // products that threads share should be large
    const Attend attend = packed_attention(batch, c);
    forward_together(hidden, weights, batch, precision, workspace, [&](size_t) { return attend; });
    return;
  }
  const size_t width = static_cast<size_t>(c.hidden_size);
  const auto parts = cut_into_parts(batch, kPartTokens, workspace.prefixes);
  for (const bool wants_prefixes : {true, false})
    for (const BatchPart& part : parts) {
      if (part.is_prefixes() != wants_prefixes) continue;
      forward_together(
          hidden.subspan(static_cast<size_t>(part.first_row) * width, part.batch.tokens.size() * width),
          weights, part.batch, precision, workspace, [&](size_t layer) {
            return part.is_prefixes() ? sharing_attention(part, layer, c) : part_attention(part, layer, c);
          });
    }
}

}  // namespace ropd::model
