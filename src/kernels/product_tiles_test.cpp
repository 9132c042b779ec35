#include "kernels/product.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/threads.h"
#include "kernels/matmul_test_support.h"
#include "support/chosen_target.h"

namespace ropd::kernels {
namespace {

std::vector<float> numbers(int64_t count, int64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>((i * 7919 + seed * 104729) % 2003 - 1001) / 1001;
  return values;
}

// Every instruction set with fused multiply-adds gives the same bits. (What matmul.h makes of these products is
// tested in matmul_test.cpp for the kernels that this machine chooses.)
TEST(TilesProduct, IsItsNaiveLoopOnEveryInstructionSet) {
  for (const int64_t target : {HWY_AVX2, HWY_AVX3}) {
    if ((hwy::SupportedTargets() & target) == 0) continue;
    const test::ChosenTarget chosen(target);
    for (const int64_t m : {1, 2, 13, 150})
      for (const auto& [n, k] : {std::pair<int64_t, int64_t>{37, 1}, {64, 401}, {5, 1031}})
        for (const bool add : {false, true}) {
          const auto a = numbers(m * k, 1), b = numbers(n * k, 2), begin = numbers(m * n, 3);
          auto c = begin;
          Product product{.c = c.data(), .m = m, .n = n, .k = k, .add = add, .round_to_bf16 = true};
          product.a = a.data();
          product.a_row_stride = k;
          product.b = b.data();
          product.b_row_stride = 1;
          product.b_column_stride = k;
          tiles_product(product);
          for (int64_t i = 0; i < m * n; ++i)
            ASSERT_EQ(c[static_cast<size_t>(i)],
                      summed(
                          add ? begin[static_cast<size_t>(i)] : 0, k, Precision::bf16_tiles,
                          [&](int64_t d) { return a[static_cast<size_t>(i / n * k + d)]; },
                          [&](int64_t d) { return b[static_cast<size_t>(i % n * k + d)]; }))
                << hwy::TargetName(target) << " " << m << " " << n << " " << k << " at " << i;
        }
  }
}

TEST(TilesProduct, ThreadsAndStoredPanelsDoNotShow) {
  constexpr int64_t kM = 75, kN = 300, kK = 1100;
  const auto a = numbers(kM * kK, 4), b = numbers(kN * kK, 5);
  std::vector<std::byte> panels(static_cast<size_t>((kN + 31) / 32 * 32 * ((kK + 31) / 32 * 32) * 2));
  std::vector<float> first;
  const size_t before = num_threads();
  for (const size_t threads : {1, 2, 5})
    for (const bool is_packed : {false, true}) {
      set_num_threads(threads);
      std::vector<float> c(kM * kN);
      Product product{.c = c.data(), .m = kM, .n = kN, .k = kK, .round_to_bf16 = true};
      product.a = a.data();
      product.a_row_stride = kK;
      product.b = b.data();
      product.b_row_stride = 1;
      product.b_column_stride = kK;
      if (is_packed) {
        tiles_pack(panels.data(), product);
        product.panels = panels.data();
      }
      tiles_product(product);
      if (first.empty()) first = c;
      EXPECT_EQ(c, first) << threads << " threads";
    }
  set_num_threads(before);
}

}  // namespace
}  // namespace ropd::kernels
