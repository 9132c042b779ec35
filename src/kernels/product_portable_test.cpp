#include "kernels/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/matmul.h"
#include "support/chosen_target.h"

namespace ropd::kernels {
namespace {

// What the products compute is tested through matmul.h (matmul_test.cpp); here is what only this unit knows.
TEST(PortableProduct, WithoutDepthClearsOrKeepsTheResult) {
  float c[4] = {1, 2, 3, 4};
  Product product;
  product.c = c;
  product.m = product.n = 2;
  product.add = true;
  portable_product(product);
  EXPECT_EQ(c[3], 4.0f);
  product.add = false;
  portable_product(product);
  EXPECT_EQ(c[0] + c[1] + c[2] + c[3], 0.0f);
}

TEST(PortableProduct, PanelsAreTwoVectorsWide) {
  const auto layout = portable_layout();
  EXPECT_TRUE(layout.columns == 8 || layout.columns == 16 || layout.columns == 32) << layout.columns;
  EXPECT_EQ(layout.depth_unit, 1);
}

std::vector<float> numbers(int64_t count, int64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>((i * 7919 + seed * 104729) % 2003 - 1001) / 1001;
  return values;
}

// The kernel that this machine chooses is compared bit by bit in matmul_test.cpp. The others run here too,
// where the machine can: to the accuracy of f32, because without fused multiply-adds the roundings differ.
TEST(PortableProduct, EveryInstructionSetMultipliesAndIgnoresTheBatch) {
  int tried = 0;
  for (const int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & target) == 0) continue;
    const test::ChosenTarget chosen(target);
    ++tried;
    for (const int64_t m : {1, 2, 7, 13, 150})
      for (const auto& [n, k] : {std::pair<int64_t, int64_t>{37, 19}, {64, 401}}) {
        const auto x = numbers(m * k, 1), w = numbers(n * k, 2);
        const WeightView weight{w.data(), DType::f32, n, k};
        std::vector<float> y(static_cast<size_t>(m * n)), packed = y, one(static_cast<size_t>(n));
        matmul(y, x, weight, Precision::f32);
        matmul(packed, x, PackedWeight::pack(weight, Precision::f32));
        EXPECT_EQ(y, packed);
        matmul(one, std::span(x).last(static_cast<size_t>(k)), weight, Precision::f32);
        EXPECT_TRUE(std::equal(one.begin(), one.end(), y.end() - n)) << hwy::TargetName(target);
        for (int64_t i = 0; i < m * n; ++i) {
          double expected = 0;
          for (int64_t l = 0; l < k; ++l)
            expected += static_cast<double>(x[static_cast<size_t>(i / n * k + l)]) *
                        w[static_cast<size_t>(i % n * k + l)];
          ASSERT_NEAR(y[static_cast<size_t>(i)], expected, 1e-3) << hwy::TargetName(target);
        }
      }
  }
  EXPECT_GE(tried, 2);
}

// Rows of one depth block are read in place, longer ones are packed; the chains are the same, and a panel
// that is not full ends where C ends.
TEST(PortableProduct, RowsInPlaceGiveTheBitsOfTheNaiveLoop) {
  for (const int64_t k : {1, 5, 96, 511, 512, 513, 1024, 1025})
    for (const int64_t m : {1, 3, 6, 13})
      for (const int64_t n : {7, 8, 13, 26, 31, 48}) {
        const auto x = numbers(m * k, 3), w = numbers(n * k, 4);
        std::vector<float> y(static_cast<size_t>(m * n));
        matmul(y, x, {w.data(), DType::f32, n, k}, Precision::f32);
        std::vector<float> grad(static_cast<size_t>(m * k), 0.5f), expected = grad;
        matmul_grad_x(grad, y, {w.data(), DType::f32, n, k}, Precision::f32);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (int64_t l = 0; l < k; ++l)
              sum = std::fma(x[static_cast<size_t>(i * k + l)], w[static_cast<size_t>(j * k + l)], sum);
            ASSERT_EQ(y[static_cast<size_t>(i * n + j)], sum) << m << " " << n << " " << k;
          }
          for (int64_t l = 0; l < k; ++l)
            for (int64_t j = 0; j < n; ++j)
              expected[static_cast<size_t>(i * k + l)] =
                  std::fma(y[static_cast<size_t>(i * n + j)], w[static_cast<size_t>(j * k + l)],
                           expected[static_cast<size_t>(i * k + l)]);
        }
        ASSERT_EQ(grad, expected) << m << " " << n << " " << k;
      }
}

}  // namespace
}  // namespace ropd::kernels
