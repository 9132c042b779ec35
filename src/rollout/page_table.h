// The pages of one sequence in a KvCache, in order of position. Pages may be shared with other tables; a
// shared page is never written, because sharing stops before the first page that is not full.
#pragma once
#include <cstdint>
#include <vector>

#include "model/kv_cache.h"

namespace ropd::rollout {

// Gives its references back on destruction. The cache must outlive it. Not thread-safe.
class PageTable {
 public:
  explicit PageTable(model::KvCache& cache) : cache_(&cache) {}
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;
  ~PageTable() { clear(); }

  const int32_t* data() const { return pages_.data(); }
  int64_t num_pages() const { return static_cast<int64_t>(pages_.size()); }
  // Pages still to be allocated before num_positions positions fit.
  int64_t pages_missing(int64_t num_positions) const;
  // Asserts that the cache has that many free pages.
  void grow(int64_t num_positions);
  // An empty table becomes the first num_positions positions of `parent`: full pages are shared, the last
  // partial one is copied. Needs at most one free page.
  void fork(const PageTable& parent, int64_t num_positions);
  void clear();

 private:
  model::KvCache* cache_;
  std::vector<int32_t> pages_;
};

}  // namespace ropd::rollout
