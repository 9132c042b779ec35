// The paged key/value cache of a whole model: one page holds `page_tokens` positions of one sequence in every
// layer. Pages are counted references, so that sequences with the same prompt share its pages.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/attention.h"
#include "model/weights.h"

namespace ropd::model {

class KvCache {
 public:
  // Memory is reserved, zero, and used by the system as pages are first written. bf16 stores what bf16 passes
  // compute, exactly.
  KvCache(const ModelConfig& config, Precision precision, int64_t num_pages, int64_t page_tokens);
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;
  ~KvCache();

  static size_t page_bytes(const ModelConfig& config, Precision precision,
                           int64_t page_tokens);  // over all layers

  int64_t page_tokens() const { return page_tokens_; }
  int64_t num_pages() const { return num_pages_; }
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  int32_t allocate();  // with one reference; asserts free_pages() > 0
  void retain(int32_t page);
  void release(int32_t page);
  void copy_page(int32_t to, int32_t from);
  kernels::KvPageView layer(int64_t index) const;

 private:
  // constant after construction
  ModelConfig config_;
  DType dtype_;
  int64_t num_pages_, page_tokens_;
  size_t layer_bytes_, total_bytes_;
  std::byte* data_ = nullptr;  // [layers, num_pages, page]
  // which pages are in use
  std::vector<int32_t> references_;  // [num_pages]
  std::vector<int32_t> free_;
};

}  // namespace ropd::model
