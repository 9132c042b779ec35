// Flat vectors of a run's state (AdamW moments, trigger means) as safetensors: one tensor
// `<vector>.<parameter>` for each parameter, so that the file explains itself and survives another layout of
// the flat storage. Exact both ways.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "base/file.h"
#include "optim/clip.h"

namespace ropd::train {

// Vectors may lie anywhere, on other ranks too, so they are read and written through functions, a tensor at a
// time.
struct SavedVector {
  using Sink = std::function<void(std::span<const float> piece)>;
  // Gives the values [offset, offset + size) to the sink in pieces, in order.
  using Read = std::function<void(size_t offset, size_t size, const Sink& sink)>;
  SavedVector(std::string vector_name, std::span<const float> values);  // [N] in this process
  SavedVector(std::string vector_name, Read read_values) : name(std::move(vector_name)), read(read_values) {}
  std::string name;  // exp_avg
  Read read;
};
struct RestoredVector {
  using Write = std::function<void(size_t offset, std::span<const float> values)>;
  RestoredVector(std::string vector_name, std::span<float> values);  // [N] in this process
  RestoredVector(std::string vector_name, Write write_values)
      : name(std::move(vector_name)), write(write_values) {}
  std::string name;
  Write write;
};

// tensors cover the vectors without gaps, in order of offset.
void save_vectors(const Path& path, std::span<const SavedVector> vectors,
                  std::span<const optim::TensorRange> tensors);
// Fails when a tensor is absent, has another size, or the file holds one that does not belong here.
void load_vectors(const Path& path, std::span<const RestoredVector> vectors,
                  std::span<const optim::TensorRange> tensors);

}  // namespace ropd::train
