#include "model/weights.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <functional>
#include <unordered_map>

#include "base/error.h"
#include "base/memory_info.h"
#include "base/parallel.h"
#include "model/adapter.h"

namespace ropd::model {
namespace {

// Calls visit(name, matrix) for every matrix of the layers.
void for_each_layer_matrix(Weights& weights, const std::function<void(const std::string&, Linear&)>& visit) {
  for (size_t i = 0; i < weights.layers.size(); ++i)
    for_each_matrix(weights.layers[i], [&](const std::string& name, Linear& linear) {
      visit("layer " + std::to_string(i) + " " + name, linear);
    });
}

// The matrix with its change, in `merged` where it has one.
kernels::WeightView whole_matrix(const Linear& linear, Buffer& merged) {
  if (linear.change.rank == 0 || linear.is_merged) return linear.stored;
  merged.resize(static_cast<size_t>(linear.outputs() * linear.inputs()));
  kernels::merge_low_rank(merged, linear.stored, linear.change);
  return {merged.data(), DType::f32, linear.outputs(), linear.inputs()};
}

void merge_into(Parameters& parameters, const Adapter& adapter) {
  std::unordered_map<std::string, const ParameterSlot*> by_name;
  for (const ParameterSlot& slot : parameters.slots()) by_name[slot.name] = &slot;
  for (size_t i = 0; i < adapter.matrices().size(); ++i) {
    const AdapterMatrix& m = adapter.matrices()[i];
    const ParameterSlot& slot = *by_name.at(m.module + ".weight");
    const auto values =
        parameters.values().subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
    Buffer merged(values.size());
    kernels::merge_low_rank(merged, {values.data(), DType::f32, m.outputs, m.inputs}, adapter.change(i));
    std::copy_n(merged.data(), merged.size(), values.data());
  }
}

}  // namespace

void widen(std::span<float> to, std::span<const std::byte> bytes, DType dtype) {
  if (dtype == DType::f32) {
    std::memcpy(to.data(), bytes.data(), to.size_bytes());
    return;
  }
  for (size_t i = 0; i < to.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    to[i] = dtype == DType::bf16 ? bf16_to_float(bits) : f16_to_float(bits);
  }
}

void for_each_matrix(LayerWeights& w, const std::function<void(const std::string&, Linear&)>& visit) {
  for (auto& [name, linear] : std::initializer_list<std::pair<const char*, Linear*>>{{"q_proj", &w.q},
                                                                                     {"k_proj", &w.k},
                                                                                     {"v_proj", &w.v},
                                                                                     {"o_proj", &w.o},
                                                                                     {"gate_proj", &w.gate},
                                                                                     {"up_proj", &w.up},
                                                                                     {"down_proj", &w.down},
                                                                                     {"router", &w.router}})
    if (linear->stored.data) visit(name, *linear);
  for (size_t e = 0; e < w.experts.size(); ++e)
    for (Linear* linear : {&w.experts[e].gate, &w.experts[e].up, &w.experts[e].down})
      visit("expert " + std::to_string(e), *linear);
}

Weights assemble_weights(const ModelConfig& c,
                         const std::function<std::span<const float>(const std::string&)>& vector,
                         const std::function<Linear(const std::string&)>& matrix) {
  Weights weights;
  weights.config = c;
  weights.execution = choose_execution(c, read_memory_info().total_bytes);
  weights.embedding = matrix("model.embed_tokens.weight");
  weights.head = c.tie_word_embeddings ? weights.embedding : matrix("lm_head.weight");
  weights.final_norm = vector("model.norm.weight");
  for (int64_t i = 0; i < c.num_layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    const auto projection = [&](const std::string& name) { return matrix(layer + name + ".weight"); };
    LayerWeights w;
    w.input_norm = vector(layer + "input_layernorm.weight");
    w.q = projection("self_attn.q_proj");
    w.k = projection("self_attn.k_proj");
    w.v = projection("self_attn.v_proj");
    w.o = projection("self_attn.o_proj");
    if (c.has_qkv_bias) {
      w.q_bias = vector(layer + "self_attn.q_proj.bias");
      w.k_bias = vector(layer + "self_attn.k_proj.bias");
      w.v_bias = vector(layer + "self_attn.v_proj.bias");
    }
    if (c.has_qk_norm) {
      w.q_norm = vector(layer + "self_attn.q_norm.weight");
      w.k_norm = vector(layer + "self_attn.k_norm.weight");
    }
    w.post_attention_norm = vector(layer + "post_attention_layernorm.weight");
    if (c.is_moe() && c.is_moe_layer[static_cast<size_t>(i)]) {
      w.router = projection("mlp.gate");
      for (int64_t e = 0; e < c.num_experts; ++e) {
        const std::string expert = "mlp.experts." + std::to_string(e) + ".";
        w.experts.push_back({projection(expert + "gate_proj"), projection(expert + "up_proj"),
                             projection(expert + "down_proj")});
      }
    } else {
      w.gate = projection("mlp.gate_proj");
      w.up = projection("mlp.up_proj");
      w.down = projection("mlp.down_proj");
    }
    weights.layers.push_back(std::move(w));
  }
  return weights;
}

bool Linear::needs_merge(Precision precision, bool with_gradient) const {
  if (change.rank == 0 || is_merged) return false;
  const auto is_ready = [&](const std::shared_ptr<const kernels::PackedWeight>& copy) {
    return copy && copy->precision() == precision;
  };
  return !is_ready(packed) || (with_gradient && !is_ready(packed_transposed));
}

void Linear::apply(std::span<float> y, std::span<const float> x, Precision precision) const {
  assert(!needs_merge(precision, false));
  if (packed && packed->precision() == precision)
    kernels::matmul(y, x, *packed);
  else
    kernels::matmul(y, x, stored, precision);
}

void apply_all(std::span<const LinearOutput> outputs, std::span<const float> x, Precision precision) {
  std::vector<kernels::PackedOutput> packed;
  for (const LinearOutput& output : outputs)
    if (output.linear->packed && output.linear->packed->precision() == precision)
      packed.push_back({output.y, output.linear->packed.get()});
  if (packed.size() == outputs.size())
    kernels::matmul(packed, x);
  else
    for (const LinearOutput& output : outputs) output.linear->apply(output.y, x, precision);
}

void Linear::apply_gradient(std::span<float> grad_x, std::span<const float> grad_y, Precision precision,
                            kernels::Update update) const {
  assert(!needs_merge(precision, true));
  if (packed_transposed && packed_transposed->precision() == precision)
    kernels::matmul(grad_x, grad_y, *packed_transposed, update);
  else
    kernels::matmul_grad_x(grad_x, grad_y, stored, precision, update);
}

std::vector<ParameterSlot> parameter_layout(const ModelConfig& config) {
  std::vector<ParameterSlot> slots;
  int64_t offset = 0;
  for (const io::ExpectedTensor& tensor : io::expected_tensors(config)) {
    int64_t size = 1;
    for (const int64_t dimension : tensor.shape) size *= dimension;
    slots.push_back({tensor.name, tensor.shape, offset, size});
    offset += size;
  }
  return slots;
}

int64_t parameter_count(const ModelConfig& config) {
  const auto slots = parameter_layout(config);
  return slots.back().offset + slots.back().size;
}

Parameters::Parameters(const ModelConfig& config)
    : config_(config), slots_(parameter_layout(config)), values_(std::make_shared<Buffer>()) {
  values_->resize(static_cast<size_t>(slots_.back().offset + slots_.back().size));
  values_->fill(0);
}

Parameters Parameters::load(const io::ModelDirectory& directory) {
  directory.check_base();
  Parameters parameters(directory.config());
  for (const ParameterSlot& slot : parameters.slots_) {
    const io::StoredTensor& tensor = directory.tensor(slot.name);
    const auto to =
        parameters.values().subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
    widen(to, tensor.bytes, tensor.dtype);
    for (size_t i = 0; i < to.size(); ++i)
      if (!std::isfinite(to[i]))
        fail(directory.path().string(), ": ", slot.name, " holds ", to[i], " at element ", i,
             " (damaged or diverged checkpoint?)");
  }
  if (directory.adapter()) merge_into(parameters, Adapter::load(*directory.adapter()));
  return parameters;
}

Weights Parameters::weights() const {
  std::unordered_map<std::string, const ParameterSlot*> by_name;
  for (const ParameterSlot& slot : slots_) by_name[slot.name] = &slot;
  const auto at = [&](const std::string& name) { return values_->data() + by_name.at(name)->offset; };
  Weights weights = assemble_weights(
      config_,
      [&](const std::string& name) {
        return std::span<const float>(at(name), static_cast<size_t>(by_name.at(name)->size));
      },
      [&](const std::string& name) {
        const auto& shape = by_name.at(name)->shape;
        return Linear{{at(name), DType::f32, shape[0], shape[1]}, nullptr};
      });
  weights.owner = values_;
  return weights;
}

Weights map_base_weights(std::shared_ptr<const io::ModelDirectory> directory) {
  struct Owner {
    std::shared_ptr<const io::ModelDirectory> directory;
    std::vector<std::unique_ptr<Buffer>> vectors;
  };
  auto owner = std::make_shared<Owner>();
  owner->directory = directory;
  Weights weights = assemble_weights(
      directory->config(),
      [&](const std::string& name) -> std::span<const float> {
        const io::StoredTensor& tensor = directory->tensor(name);
        auto& vector = *owner->vectors.emplace_back(
            std::make_unique<Buffer>(tensor.bytes.size() / dtype_bytes(tensor.dtype)));
        widen(vector, tensor.bytes, tensor.dtype);
        for (const float value : vector.span())
          if (!std::isfinite(value))
            fail(directory->path().string(), ": ", name, " holds ", value, " (damaged checkpoint?)");
        return vector.span();
      },
      [&](const std::string& name) {
        const io::StoredTensor& tensor = directory->tensor(name);
        const void* data = tensor.bytes.data();
        // Files of other programs need not align their tensors; those few are copied.
        if (reinterpret_cast<uintptr_t>(data) % dtype_bytes(tensor.dtype) != 0) {
          auto& copy = *owner->vectors.emplace_back(std::make_unique<Buffer>((tensor.bytes.size() + 3) / 4));
          std::memcpy(copy.data(), data, tensor.bytes.size());
          data = copy.data();
        }
        return Linear{{data, tensor.dtype, tensor.shape[0], tensor.shape[1]}, nullptr};
      });
  weights.owner = owner;
  return weights;
}

Weights map_weights(std::shared_ptr<const io::ModelDirectory> directory) {
  const Weights weights = map_base_weights(directory);
  if (!directory->adapter()) return weights;
  directory->check_base();
  return Adapter::load(*directory->adapter()).on(weights);
}

Weights pack_weights(const Weights& weights, Precision precision, bool with_gradient) {
  Weights packed = weights;
  std::vector<std::function<void()>> tasks;  // a matrix each: those of a small model are not worth sharing
  for_each_layer_matrix(packed, [&](const std::string& name, Linear& linear) {
    // The router stays in f32 in every precision (experts.cpp).
    const Precision own = name.ends_with("router") ? Precision::f32 : precision;
    tasks.push_back([&linear, own, precision, with_gradient] {
      Buffer merged;
      const kernels::WeightView matrix = whole_matrix(linear, merged);
      linear.packed = std::make_shared<const kernels::PackedWeight>(kernels::PackedWeight::pack(matrix, own));
      if (with_gradient)
        linear.packed_transposed = std::make_shared<const kernels::PackedWeight>(
            kernels::PackedWeight::pack_transposed(matrix, precision));
    });
  });
  parallel_tasks(tasks.size(), [&](size_t task, size_t) { tasks[task](); });
  packed.head.packed = std::make_shared<const kernels::PackedWeight>(
      kernels::PackedWeight::pack(packed.head.stored, precision));
  return packed;
}

bool is_finite(const kernels::WeightView& matrix) {
  const int64_t size = matrix.rows * matrix.columns;
  // An exponent of all ones is NaN or infinity in every stored type.
  const bool is_wide = matrix.dtype == DType::f32;
  const uint32_t mask = is_wide ? 0x7f800000u : matrix.dtype == DType::bf16 ? 0x7f80u : 0x7c00u;
  constexpr int64_t kChunk = 1 << 16;
  std::atomic<bool> found = false;
  parallel_chunks(size, kChunk, size, [&](int64_t begin, int64_t end) {
    bool is_here = false;
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t bits = is_wide ? static_cast<const uint32_t*>(matrix.data)[i]
                                    : static_cast<const uint16_t*>(matrix.data)[i];
      is_here = is_here || (bits & mask) == mask;
    }
    if (is_here) found = true;
  });
  return !found;
}

void check_finite(const Weights& weights, const std::string& where) {
  Weights views = weights;
  const auto check = [&](const std::string& name, Linear& linear) {
    if (!is_finite(linear.stored))
      fail(where, ": ", name, " holds NaN or infinity (damaged or diverged checkpoint?)");
  };
  check("embed_tokens", views.embedding);
  if (!weights.config.tie_word_embeddings) check("lm_head", views.head);
  for_each_layer_matrix(views, check);
}

}  // namespace ropd::model
