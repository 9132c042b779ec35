#include "model/kv_cache.h"

#include <sys/mman.h>

#include <cassert>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace ropd::model {
namespace {

size_t layer_page_bytes(const ModelConfig& c, DType dtype, int64_t page_tokens) {
  return static_cast<size_t>(c.num_kv_heads * 2 * c.head_dim * page_tokens) * dtype_bytes(dtype);
}

DType cache_type(Precision precision) { return is_bf16(precision) ? DType::bf16 : DType::f32; }

}  // namespace

size_t KvCache::page_bytes(const ModelConfig& config, Precision precision, int64_t page_tokens) {
  return layer_page_bytes(config, cache_type(precision), page_tokens) *
         static_cast<size_t>(config.num_layers);
}

KvCache::KvCache(const ModelConfig& config, Precision precision, int64_t num_pages, int64_t page_tokens)
    : config_(config), dtype_(cache_type(precision)), num_pages_(num_pages), page_tokens_(page_tokens) {
  assert(num_pages > 0 && page_tokens > 0 && page_tokens % 32 == 0);
  layer_bytes_ = layer_page_bytes(config, dtype_, page_tokens) * static_cast<size_t>(num_pages);
  total_bytes_ = layer_bytes_ * static_cast<size_t>(config.num_layers);
  void* memory =
      mmap(nullptr, total_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    fail("key/value cache: cannot reserve ", total_bytes_, " bytes for ", num_pages, " pages of ",
         page_tokens, " tokens: ", std::strerror(errno), " (lower rollout.memory_gb)");
  madvise(memory, total_bytes_, MADV_HUGEPAGE);  // advice: fewer address translations behind long contexts
  data_ = static_cast<std::byte*>(memory);
  references_.assign(static_cast<size_t>(num_pages), 0);
  for (int64_t page = num_pages; page-- > 0;) free_.push_back(static_cast<int32_t>(page));
}

KvCache::~KvCache() { munmap(data_, total_bytes_); }

int32_t KvCache::allocate() {
  assert(!free_.empty());
  const int32_t page = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(page)] = 1;
  return page;
}

void KvCache::retain(int32_t page) { ++references_[static_cast<size_t>(page)]; }

void KvCache::release(int32_t page) {
  assert(references_[static_cast<size_t>(page)] > 0);
  if (--references_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

void KvCache::copy_page(int32_t to, int32_t from) {
  const size_t bytes = layer_page_bytes(config_, dtype_, page_tokens_);
  for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
    std::byte* pages = data_ + static_cast<size_t>(layer) * layer_bytes_;
    std::memcpy(pages + static_cast<size_t>(to) * bytes, pages + static_cast<size_t>(from) * bytes, bytes);
  }
}

kernels::KvPageView KvCache::layer(int64_t index) const {
  return {data_ + static_cast<size_t>(index) * layer_bytes_,
          dtype_,
          num_pages_,
          page_tokens_,
          config_.num_kv_heads,
          config_.head_dim};
}

}  // namespace ropd::model
