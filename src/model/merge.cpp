#include "model/merge.h"

#include <cstring>

#include "base/parallel.h"
#include "model/adapter.h"

namespace ropd::model {
namespace {

std::vector<std::byte> narrowed(std::span<const float> values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * dtype_bytes(dtype));
  const auto count = static_cast<int64_t>(values.size());
  parallel_chunks(count, 1 << 14, 4 * count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float value = values[static_cast<size_t>(i)];
      std::byte* const to = bytes.data() + static_cast<size_t>(i) * dtype_bytes(dtype);
      if (dtype == DType::f32) {
        std::memcpy(to, &value, sizeof value);
        continue;
      }
      const uint16_t bits = dtype == DType::bf16 ? float_to_bf16(value) : float_to_f16(value);
      std::memcpy(to, &bits, sizeof bits);
    }
  });
  return bytes;
}

// The whole tensor in f32, with its change if it has one.
Buffer widened(const io::StoredTensor& tensor, const std::optional<kernels::LowRank>& change) {
  Buffer values(static_cast<size_t>(tensor.num_elements()));
  widen(values, tensor.bytes, tensor.dtype);
  if (!change) return values;
  Buffer merged(values.size());
  kernels::merge_low_rank(merged, {values.data(), DType::f32, tensor.shape[0], tensor.shape[1]}, *change);
  return merged;
}

}  // namespace

std::vector<io::TensorToSave> merged_tensors(std::shared_ptr<const io::ModelDirectory> directory,
                                             std::optional<DType> dtype) {
  std::optional<Adapter> adapter;
  directory->check_base();
  if (directory->adapter()) adapter = Adapter::load(*directory->adapter());
  std::vector<io::TensorToSave> tensors;
  for (const io::StoredTensor& tensor : directory->tensors()) {
    std::optional<size_t> matrix;
    for (size_t i = 0; adapter && i < adapter->matrices().size(); ++i)
      if (tensor.name == adapter->matrices()[i].module + ".weight") matrix = i;
    const DType own = dtype.value_or(tensor.dtype);
    tensors.push_back({{tensor.name, own, tensor.shape},
                       [directory, adapter, matrix, own, &tensor](const io::TensorToSave::Sink& sink) {
                         if (!matrix && own == tensor.dtype) return sink(tensor.bytes);
                         std::optional<kernels::LowRank> change;
                         if (matrix) change = adapter->change(*matrix);
                         sink(narrowed(widened(tensor, change), own));
                       }});
  }
  return tensors;
}

}  // namespace ropd::model
