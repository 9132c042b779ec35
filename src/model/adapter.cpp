#include "model/adapter.h"

#include <cassert>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"

namespace ropd::model {
namespace {

// Every matrix of the layers, in one order for all weights of an architecture.
std::vector<Linear*> layer_matrices(Weights& weights) {
  std::vector<Linear*> matrices;
  for (LayerWeights& layer : weights.layers)
    for_each_matrix(layer, [&](const std::string&, Linear& linear) { matrices.push_back(&linear); });
  return matrices;
}

}  // namespace

Adapter::Adapter(AdapterConfig config, std::vector<AdapterMatrix> matrices)
    : config_(std::move(config)), matrices_(std::move(matrices)), values_(std::make_shared<Buffer>()) {
  int64_t offset = 0;
  const auto add = [&](std::string name, int64_t rows, int64_t columns) {
    slots_.push_back({std::move(name), {rows, columns}, offset, rows * columns});
    offset += rows * columns;
  };
  for (const AdapterMatrix& m : matrices_) {
    add(io::lora_a_name(m.module), m.rank, m.inputs);
    add(io::lora_b_name(m.module), m.outputs, m.rank);
  }
  values_->resize(static_cast<size_t>(offset));
  values_->fill(0);
  if (!config_.targets.empty()) return;
  std::set<std::string> names;
  for (const AdapterMatrix& m : matrices_) names.insert(m.module.substr(m.module.rfind('.') + 1));
  config_.targets.assign(names.begin(), names.end());
}

Adapter::Adapter(const ModelConfig& base, const AdapterConfig& config, std::string_view where)
    : Adapter(config, io::adapter_matrices(base, config, where)) {}

Adapter Adapter::load(const io::AdapterDirectory& directory) {
  Adapter adapter(directory.config(), directory.matrices());
  for (const ParameterSlot& slot : adapter.slots_) {
    const io::StoredTensor& tensor = directory.tensor(slot.name);
    const auto to =
        adapter.values().subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
    widen(to, tensor.bytes, tensor.dtype);
    for (const float value : to)
      if (!std::isfinite(value))
        fail(directory.path().string(), ": ", slot.name, " holds ", value, " (damaged or diverged adapter?)");
  }
  return adapter;
}

void Adapter::initialize(uint64_t seed) {
  const uint64_t own = derive_seed(seed, "adapter");
  values_->fill(0);
  for (size_t i = 0; i < matrices_.size(); ++i) {
    const ParameterSlot& a = slots_[2 * i];
    const double bound = 1 / std::sqrt(static_cast<double>(matrices_[i].inputs));
    const uint64_t key = text_key(a.name);
    float* const to = values_->data() + a.offset;
    parallel_chunks(a.size, 1 << 12, 64 * a.size, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at)
        to[at] = static_cast<float>(
            bound * (2 * random_uniform(own, Purpose::weight_init, {key, static_cast<uint32_t>(at), 0}) - 1));
    });
  }
}

kernels::LowRank Adapter::change(size_t matrix) const {
  const AdapterMatrix& m = matrices_[matrix];
  const float* const values = std::as_const(*values_).data();
  return {values + slots_[2 * matrix].offset, values + slots_[2 * matrix + 1].offset, m.rank, m.scale};
}

Weights Adapter::on(const Weights& base) const {
  std::unordered_map<std::string, size_t> by_weight;
  for (size_t i = 0; i < matrices_.size(); ++i) by_weight[matrices_[i].module + ".weight"] = i;
  // Which matrix is which part of the decoder is known to assemble_weights alone: it puts the changes in place.
  Weights changes = assemble_weights(
      base.config, [](const std::string&) { return std::span<const float>{}; },
      [&](const std::string& name) {
        Linear linear{{values_->data(), DType::f32, 0, 0}};
        if (const auto found = by_weight.find(name); found != by_weight.end())
          linear.change = change(found->second);
        return linear;
      });
  Weights adapted = base;
  const auto from = layer_matrices(changes), to = layer_matrices(adapted);
  assert(from.size() == to.size());
  for (size_t i = 0; i < to.size(); ++i) {
    if (from[i]->change.rank == 0) continue;
    to[i]->change = from[i]->change;
    to[i]->packed = to[i]->packed_transposed = nullptr;
  }
  struct Owner {
    std::shared_ptr<const void> base;
    std::shared_ptr<const Buffer> values;
  };
  adapted.owner = std::make_shared<Owner>(Owner{base.owner, values_});
  return adapted;
}

}  // namespace ropd::model
