// The weights of a decoder as the forward pass sees them: views into whatever holds them (a mapped
// checkpoint, the flat master parameters of training, packed copies for decoding). One struct serves all, so
// one block implementation does.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/model_directory.h"
#include "kernels/low_rank.h"
#include "kernels/matmul.h"
#include "model/execution.h"
#include "records/model_config.h"
#include "tensor/buffer.h"

namespace ropd::model {

using kernels::Precision;

// A matrix [outputs, inputs]; products use the packed copy when there is one (same bits, faster for few
// rows). With a low-rank change the matrix is W + scale · (B A): packed copies hold it, and where there is none
// it is merged before use (merged_layer.h).
struct Linear {
  kernels::WeightView stored;
  std::shared_ptr<const kernels::PackedWeight> packed;
  std::shared_ptr<const kernels::PackedWeight> packed_transposed;  // for the gradient
  kernels::LowRank change = {};                                    // of what is stored
  bool is_merged = false;                                          // `stored` holds the change already
  int64_t outputs() const { return stored.rows; }
  int64_t inputs() const { return stored.columns; }
  // Whether products in this precision, or also their gradients, need the merged matrix first.
  bool needs_merge(Precision precision, bool with_gradient) const;
  void apply(std::span<float> y, std::span<const float> x, Precision precision) const;
  // grad_y · W into grad_x.
  void apply_gradient(std::span<float> grad_x, std::span<const float> grad_y, Precision precision,
                      kernels::Update update) const;
};

// Several matrices applied to the same x.
struct LinearOutput {
  std::span<float> y;
  const Linear* linear;
};
void apply_all(std::span<const LinearOutput> outputs, std::span<const float> x, Precision precision);

struct Expert {
  Linear gate, up, down;
};

// Spans are empty where the architecture has no such part.
struct LayerWeights {
  std::span<const float> input_norm;  // [D]
  Linear q, k, v, o;                  // [H*E, D], [K*E, D], [K*E, D], [D, H*E]
  std::span<const float> q_bias, k_bias, v_bias;
  std::span<const float> q_norm, k_norm;       // [E]
  std::span<const float> post_attention_norm;  // [D]
  Linear gate, up, down;                       // [F, D], [F, D], [D, F]
  Linear router;                               // [experts, D]
  std::vector<Expert> experts;
};

class LayerStream;

// Constant after construction; may be read by several threads. Copies share what the views point to.
struct Weights {
  ModelConfig config;
  Execution execution;
  Linear embedding;  // [V, D]; never packed
  Linear head;       // [V, D]; the embedding when tied
  std::span<const float> final_norm;
  std::vector<LayerWeights> layers;
  std::shared_ptr<const void> owner;  // keeps the memory behind the views alive
  // Who brings the layers into memory one after the other and takes them out again (layer_stream.h); nullptr:
  // they may all be there at once. One pass at a time.
  std::shared_ptr<LayerStream> stream = {};
};

// The weights of an architecture from its tensors by their Hugging Face names: the one place that knows which
// tensor of a checkpoint is which part of the decoder. The caller sets `owner`.
Weights assemble_weights(const ModelConfig& config,
                         const std::function<std::span<const float>(const std::string& name)>& vector,
                         const std::function<Linear(const std::string& name)>& matrix);

// Where each tensor of a model lies in flat storage, by its Hugging Face name, in the order of the
// checkpoint's layers.
struct ParameterSlot {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;
  int64_t size = 0;
};

std::vector<ParameterSlot> parameter_layout(const ModelConfig& config);
int64_t parameter_count(const ModelConfig& config);

// The values of a stored tensor, which need not be aligned.
void widen(std::span<float> to, std::span<const std::byte> bytes, DType dtype);

// Flat f32 master parameters for training. The views of weights() follow later changes of values().
class Parameters {
 public:
  explicit Parameters(const ModelConfig& config);
  Parameters(Parameters&&) = default;
  Parameters& operator=(Parameters&&) = default;
  // With its adapter merged where the directory is one.
  static Parameters load(const io::ModelDirectory& directory);
  const ModelConfig& config() const { return config_; }
  const std::vector<ParameterSlot>& slots() const { return slots_; }
  std::span<float> values() { return *values_; }
  std::span<const float> values() const { return std::as_const(*values_); }
  Weights weights() const;

 private:
  ModelConfig config_;
  std::vector<ParameterSlot> slots_;
  std::shared_ptr<Buffer> values_;
};

// Views of a mapped checkpoint: matrices are used where they lie, in the type they are stored in; only
// vectors are converted. With its adapter where the directory is one (whose base is read and compared), or of its
// base alone. Refuses non-finite norm weights by name.
Weights map_weights(std::shared_ptr<const io::ModelDirectory> directory);
Weights map_base_weights(std::shared_ptr<const io::ModelDirectory> directory);

// The same weights with every matrix packed in `precision`, for its gradient too when asked; for inference
// the originals are no longer needed except the embedding.
Weights pack_weights(const Weights& weights, Precision precision, bool with_gradient = false);

// Whether a matrix holds neither NaN nor infinity.
bool is_finite(const kernels::WeightView& matrix);
// Calls visit(name, matrix) for every matrix of a layer that the architecture has: "q_proj", "expert 3", ...
void for_each_matrix(LayerWeights& layer, const std::function<void(const std::string&, Linear&)>& visit);

// Refuses weights that hold NaN or infinity, naming the tensor. Reads everything once.
void check_finite(const Weights& weights, const std::string& where);

}  // namespace ropd::model
