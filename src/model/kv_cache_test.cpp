#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ropd::model {
namespace {

ModelConfig small() {
  ModelConfig config;
  config.num_layers = 2;
  config.num_kv_heads = 1;
  config.head_dim = 4;
  return config;
}

TEST(KvCache, PagesComeBackWhenTheLastReferenceGoes) {
  KvCache cache(small(), Precision::f32, 2, 32);
  const int32_t first = cache.allocate();
  cache.retain(first);
  EXPECT_EQ(cache.free_pages(), 1);
  cache.release(first);
  EXPECT_EQ(cache.free_pages(), 1);
  cache.release(first);
  EXPECT_EQ(cache.free_pages(), 2);
}

TEST(KvCache, CopiesAPageInEveryLayer) {
  KvCache cache(small(), Precision::bf16, 3, 32);
  for (int64_t layer = 0; layer < 2; ++layer) {
    const auto view = cache.layer(layer);
    std::memset(static_cast<std::byte*>(view.data) + view.page_bytes(), static_cast<int>(layer) + 1,
                view.page_bytes());
  }
  cache.copy_page(2, 1);
  for (int64_t layer = 0; layer < 2; ++layer) {
    const auto view = cache.layer(layer);
    const auto* page = static_cast<const unsigned char*>(view.data) + 2 * view.page_bytes();
    EXPECT_EQ(page[0], layer + 1);
    EXPECT_EQ(page[view.page_bytes() - 1], layer + 1);
  }
}

TEST(KvCache, CountsTheBytesOfAPageOverAllLayers) {
  EXPECT_EQ(KvCache::page_bytes(small(), Precision::f32, 32), 2u * 2 * 4 * 32 * 4);
  EXPECT_EQ(KvCache::page_bytes(small(), Precision::bf16, 32), 2u * 2 * 4 * 32 * 2);
}

}  // namespace
}  // namespace ropd::model
