#include "train/state_tensors.h"

#include <cassert>
#include <cstring>

#include "base/error.h"
#include "io/safetensors.h"

namespace ropd::train {

void save_vectors(const Path& path, std::span<const SavedVector> vectors,
                  std::span<const optim::TensorRange> tensors) {
  std::vector<io::TensorInfo> infos;
  for (const SavedVector& vector : vectors)
    for (const optim::TensorRange& tensor : tensors)
      infos.push_back({vector.name + "." + tensor.name, DType::f32, {static_cast<int64_t>(tensor.size)}});
  io::SafetensorsWriter writer(path, infos, {{"format", "ropd state"}});
  for (const SavedVector& vector : vectors)
    for (const optim::TensorRange& tensor : tensors) {
      assert(tensor.offset + tensor.size <= vector.values.size());
      writer.write(vector.values.subspan(tensor.offset, tensor.size));
    }
  writer.commit();
}

void load_vectors(const Path& path, std::span<const RestoredVector> vectors,
                  std::span<const optim::TensorRange> tensors) {
  const io::SafetensorsFile file(path);
  const size_t expected = vectors.size() * tensors.size();
  if (file.tensors().size() != expected)
    fail(path.string(), ": holds ", file.tensors().size(), " tensors, this model's state has ", expected,
         " (a checkpoint of another model?)");
  for (const RestoredVector& vector : vectors)
    for (const optim::TensorRange& tensor : tensors) {
      const io::StoredTensor& stored = file.tensor(vector.name + "." + tensor.name);
      if (stored.dtype != DType::f32 || stored.bytes.size() != tensor.size * sizeof(float))
        fail(path.string(), ": ", stored.name, " has ", stored.num_elements(), " values, expected ",
             tensor.size, " in F32 (a checkpoint of another model?)");
      std::memcpy(vector.values.data() + tensor.offset, stored.bytes.data(), stored.bytes.size());
    }
}

}  // namespace ropd::train
