// A mapped model that is only read, within a memory budget: used where it lies when all of it and a batch fit,
// streamed layer by layer (layer_stream.h) when not. The results are the same bits.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "model/layer_stream.h"

namespace ropd::model {

// Whether a model and a batch of so many positions need no streaming.
bool fits_memory(uint64_t stored_bytes, const ModelConfig& config, uint64_t memory_bytes,
                 int64_t batch_tokens);

// Not thread-safe.
class BoundedModel {
 public:
  // `resident`: the directory's weights, mapped. Without a number the budget is what is free at each use.
  BoundedModel(std::shared_ptr<const io::ModelDirectory> directory, Weights resident,
               std::optional<uint64_t> memory_bytes);
  // As they are to be used now, with batches of so many positions.
  Weights weights(int64_t batch_tokens);
  StreamCounts counts() const;  // of all passes so far; 0 of a model that fits
  const ModelConfig& config() const { return resident_.config; }
  const io::ModelDirectory& directory() const { return *directory_; }

 private:
  const std::shared_ptr<const io::ModelDirectory> directory_;
  const Weights resident_;
  const std::optional<uint64_t> memory_bytes_;
  std::optional<Weights> streamed_;  // from the first time it did not fit
};

}  // namespace ropd::model
