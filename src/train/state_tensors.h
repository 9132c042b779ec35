// Flat vectors of a run's state (AdamW moments, trigger means) as safetensors: one tensor
// `<vector>.<parameter>` for each parameter, so that the file explains itself and survives another layout of
// the flat storage. Exact both ways.
#pragma once
#include <span>
#include <string>

#include "base/file.h"
#include "optim/clip.h"

namespace ropd::train {

struct SavedVector {
  std::string name;               // exp_avg
  std::span<const float> values;  // [N]
};
struct RestoredVector {
  std::string name;
  std::span<float> values;  // [N]
};

// tensors cover the vectors without gaps, in order of offset.
void save_vectors(const Path& path, std::span<const SavedVector> vectors,
                  std::span<const optim::TensorRange> tensors);
// Fails when a tensor is absent, has another size, or the file holds one that does not belong here.
void load_vectors(const Path& path, std::span<const RestoredVector> vectors,
                  std::span<const optim::TensorRange> tensors);

}  // namespace ropd::train
