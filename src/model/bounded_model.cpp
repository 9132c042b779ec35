#include "model/bounded_model.h"

#include "base/memory_info.h"
#include "model/forward.h"

namespace ropd::model {

bool fits_memory(uint64_t stored_bytes, const ModelConfig& config, uint64_t memory_bytes,
                 int64_t batch_tokens) {
  return stored_bytes + static_cast<uint64_t>(batch_tokens) * forward_bytes_per_token(config) <= memory_bytes;
}

BoundedModel::BoundedModel(std::shared_ptr<const io::ModelDirectory> directory, Weights resident,
                           std::optional<uint64_t> memory_bytes)
    : directory_(std::move(directory)), resident_(std::move(resident)), memory_bytes_(memory_bytes) {}

Weights BoundedModel::weights(int64_t batch_tokens) {
  const uint64_t memory = memory_bytes_ ? *memory_bytes_ : usable_bytes(read_memory_info());
  if (fits_memory(directory_->num_bytes(), resident_.config, memory, batch_tokens)) return resident_;
  if (!streamed_) streamed_ = stream_weights(directory_, memory);
  streamed_->stream->set_memory(memory);
  return *streamed_;
}

StreamCounts BoundedModel::counts() const { return streamed_ ? streamed_->stream->counts() : StreamCounts{}; }

}  // namespace ropd::model
