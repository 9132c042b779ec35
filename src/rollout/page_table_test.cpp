#include "rollout/page_table.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ropd::rollout {
namespace {

ModelConfig small() {
  ModelConfig config;
  config.num_layers = 1;
  config.num_kv_heads = 1;
  config.head_dim = 2;
  return config;
}

std::byte* page_data(const model::KvCache& cache, int32_t page) {
  const auto view = cache.layer(0);
  return static_cast<std::byte*>(view.data) + page * view.page_bytes();
}

TEST(PageTable, GrowsByWholePages) {
  model::KvCache cache(small(), model::Precision::f32, 4, 32);
  PageTable table(cache);
  EXPECT_EQ(table.pages_missing(0), 0);
  EXPECT_EQ(table.pages_missing(1), 1);
  table.grow(33);
  EXPECT_EQ(table.num_pages(), 2);
  EXPECT_EQ(table.pages_missing(64), 0);
  EXPECT_EQ(table.pages_missing(65), 1);
  EXPECT_EQ(cache.free_pages(), 2);
  table.clear();
  EXPECT_EQ(cache.free_pages(), 4);
}

TEST(PageTable, ForkSharesFullPagesAndCopiesTheLast) {
  model::KvCache cache(small(), model::Precision::f32, 4, 32);
  PageTable parent(cache), copy(cache);
  parent.grow(40);
  std::memset(page_data(cache, parent.data()[1]), 7, 4);
  copy.fork(parent, 40);
  EXPECT_EQ(copy.data()[0], parent.data()[0]);
  EXPECT_NE(copy.data()[1], parent.data()[1]);
  EXPECT_EQ(std::memcmp(page_data(cache, copy.data()[1]), page_data(cache, parent.data()[1]), 4), 0);
  EXPECT_EQ(cache.free_pages(), 1);
  parent.clear();
  EXPECT_EQ(cache.free_pages(), 2) << "the shared page is still held";
}

TEST(PageTable, ForkAtAPageBoundaryTakesNoPage) {
  model::KvCache cache(small(), model::Precision::f32, 2, 32);
  PageTable parent(cache), copy(cache), nothing(cache);
  parent.grow(64);
  copy.fork(parent, 32);
  nothing.fork(parent, 0);
  EXPECT_EQ(copy.num_pages(), 1);
  EXPECT_EQ(nothing.num_pages(), 0);
}

TEST(PageTable, GivesPagesBackAtTheEndOfItsLife) {
  model::KvCache cache(small(), model::Precision::f32, 2, 32);
  {
    PageTable table(cache);
    table.grow(64);
    EXPECT_EQ(cache.free_pages(), 0);
  }
  EXPECT_EQ(cache.free_pages(), 2);
}

}  // namespace
}  // namespace ropd::rollout
