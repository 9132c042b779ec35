#include "model/forward.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "kernels/embedding.h"
#include "kernels/rms_norm.h"
#include "model/layer_stream.h"

namespace ropd::model {
namespace {

// A batch on its way through the layers: its rows are `states` [T, D] between them and behind the last.
class Rows {
 public:
  Rows(std::span<float> states, const Weights& weights, const PackedBatch& batch, Precision precision,
       Workspace& workspace)
      : states_(states),
        weights_(weights),
        workspace_(workspace),
        positions_(batch.positions),
        precision_(precision) {
    kernels::embedding(states, batch.tokens, weights.embedding.stored);
  }

  // The rope table must reach as far as the batch does.
  void go_through(size_t layer, const kernels::RopeTable& rope, const Attend& attend) {
    const BlockContext context{weights_.config, rope, positions_, precision_, /*for_gradient=*/false};
    block(states_, workspace_.trace, workspace_.scratch,
          workspace_.merged.of(weights_.layers[layer], precision_), context, attend);
  }

  void finish() {
    Buffer& inv_rms = workspace_.trace.input_inv_rms;
    inv_rms.resize(positions_.size());
    kernels::rms_norm(states_, inv_rms, states_, weights_.final_norm,
                      static_cast<float>(weights_.config.rms_norm_eps));
  }

 private:
  std::span<float> states_;
  const Weights& weights_;
  Workspace& workspace_;
  std::span<const int32_t> positions_;
  Precision precision_;
};

// hidden [T, D] of sequences that go through the layers together.
void forward_together(std::span<float> hidden, const Weights& weights, const PackedBatch& batch,
                      Precision precision, Workspace& workspace,
                      const std::function<Attend(size_t layer)>& attention_in) {
  Rows rows(hidden, weights, batch, precision, workspace);
  const kernels::RopeTable& rope = workspace.rope_for(weights.config, batch.num_positions());
  for (size_t i = 0; i < weights.layers.size(); ++i) rows.go_through(i, rope, attention_in(i));
  rows.finish();
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
             Workspace& workspace, const OnLayer& on_layer) {
  const ModelConfig& c = weights.config;
  check_batch(batch, c);
  if (weights.execution.sharing == Sharing::products) {  // products that threads share should be large
    std::optional<LayerStream::Pass> pass;
    if (weights.stream) pass.emplace(*weights.stream, batch.num_tokens());
    const Attend attend = packed_attention(batch, c);
    forward_together(hidden, weights, batch, precision, workspace, [&](size_t layer) {
      if (pass) pass->enter(layer);
      if (on_layer) on_layer(layer);
      return attend;
    });
    if (pass) pass->finish();
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

void forward_by_layers(std::span<Buffer> states, const Weights& weights, std::span<const PackedBatch> batches,
                       Precision precision, Workspace& workspace,
                       const std::function<void(size_t layer)>& enter_layer) {
  const ModelConfig& c = weights.config;
  std::vector<Rows> rows;
  std::vector<Attend> attends;
  int64_t num_positions = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    check_batch(batches[i], c);
    states[i].resize(batches[i].tokens.size() * static_cast<size_t>(c.hidden_size));
    rows.emplace_back(states[i], weights, batches[i], precision, workspace);
    attends.push_back(packed_attention(batches[i], c));
    num_positions = std::max(num_positions, batches[i].num_positions());
  }
  const kernels::RopeTable& rope = workspace.rope_for(c, num_positions);
  for (size_t layer = 0; layer < weights.layers.size(); ++layer) {
    enter_layer(layer);
    for (size_t i = 0; i < batches.size(); ++i) rows[i].go_through(layer, rope, attends[i]);
  }
  for (Rows& batch : rows) batch.finish();
}

size_t waiting_bytes_per_token(const ModelConfig& config) {
  return static_cast<size_t>(config.hidden_size) * sizeof(float) + sizeof(Token) + sizeof(int32_t);
}

size_t forward_bytes_per_token(const ModelConfig& config) {
  return trace_bytes_per_token(config) + scratch_bytes_per_token(config, /*with_gradient=*/false) +
         waiting_bytes_per_token(config);
}

}  // namespace ropd::model
