#include "train/state_tensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "io/safetensors.h"

namespace ropd::train {

SavedVector::SavedVector(std::string vector_name, std::span<const float> values)
    : SavedVector(std::move(vector_name), [values](size_t offset, size_t size, const Sink& sink) {
        sink(values.subspan(offset, size));
      }) {}

RestoredVector::RestoredVector(std::string vector_name, std::span<float> values)
    : RestoredVector(std::move(vector_name), [values](size_t offset, std::span<const float> from) {
        std::copy(from.begin(), from.end(), values.subspan(offset, from.size()).begin());
      }) {}

void save_vectors(const Path& path, std::span<const SavedVector> vectors,
                  std::span<const optim::TensorRange> tensors) {
  std::vector<io::TensorInfo> infos;
  for (const SavedVector& vector : vectors)
    for (const optim::TensorRange& tensor : tensors)
      infos.push_back({vector.name + "." + tensor.name, DType::f32, {static_cast<int64_t>(tensor.size)}});
  io::SafetensorsWriter writer(path, infos, {{"format", "ropd state"}});
  for (const SavedVector& vector : vectors)
    for (const optim::TensorRange& tensor : tensors)
      vector.read(tensor.offset, tensor.size, [&](std::span<const float> piece) { writer.write(piece); });
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
      // Whoever wrote the file aligned it; a file that was tampered with may not be.
      std::vector<float> aligned;
      const auto* values = reinterpret_cast<const float*>(stored.bytes.data());
      if (reinterpret_cast<uintptr_t>(values) % alignof(float) != 0) {
        aligned.resize(tensor.size);
        std::memcpy(aligned.data(), stored.bytes.data(), stored.bytes.size());
        values = aligned.data();
      }
      vector.write(tensor.offset, {values, tensor.size});
    }
}

}  // namespace ropd::train
