#include "rollout/page_table.h"

#include <algorithm>
#include <cassert>

namespace ropd::rollout {

int64_t PageTable::pages_missing(int64_t num_positions) const {
  const int64_t size = cache_->page_tokens();
  return std::max<int64_t>(0, (num_positions + size - 1) / size - num_pages());
}

void PageTable::grow(int64_t num_positions) {
  for (int64_t missing = pages_missing(num_positions); missing > 0; --missing)
    pages_.push_back(cache_->allocate());
}

void PageTable::fork(const PageTable& parent, int64_t num_positions) {
  assert(pages_.empty() && parent.pages_missing(num_positions) == 0);
  const int64_t num_full = num_positions / cache_->page_tokens();
  for (int64_t i = 0; i < num_full; ++i) {
    cache_->retain(parent.pages_[static_cast<size_t>(i)]);
    pages_.push_back(parent.pages_[static_cast<size_t>(i)]);
  }
  if (num_positions % cache_->page_tokens() == 0) return;
  pages_.push_back(cache_->allocate());
  cache_->copy_page(pages_.back(), parent.pages_[static_cast<size_t>(num_full)]);
}

void PageTable::clear() {
  for (const int32_t page : pages_) cache_->release(page);
  pages_.clear();
}

}  // namespace ropd::rollout
