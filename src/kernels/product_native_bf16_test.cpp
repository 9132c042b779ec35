#include "kernels/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace ropd::kernels {
namespace {

TEST(NativeBf16Product, MultipliesPairsExactly) {
  if (!has_native_bf16()) GTEST_SKIP() << "this processor has no bf16 dot products";
  const float a[3] = {1, 2, 3}, b[3] = {0.5f, 4, -2};  // odd depth: the last pair is half empty
  float c = 100;
  Product product;
  product.c = &c;
  product.m = product.n = 1;
  product.k = 3;
  product.round_to_bf16 = true;
  product.a = a;
  product.a_row_stride = 3;
  product.b = b;
  product.b_row_stride = 1;
  product.b_column_stride = 3;
  native_bf16_product(product);
  EXPECT_EQ(c, 0.5f + 8 - 6);
  product.add = true;
  native_bf16_product(product);
  EXPECT_EQ(c, 5.0f);
}

float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

// The rule of product.h, word for word: fused multiply-adds in order of depth, what is below 2^-126 is zero.
// Factors of all magnitudes, so that sums underflow, cancel and absorb.
TEST(NativeBf16Product, IsAChainInOrderOfDepthThatFlushesTinyNumbers) {
  if (!has_native_bf16()) GTEST_SKIP() << "this processor has no bf16 dot products";
  std::mt19937 random(7);
  for (const int exponents : {4, 60, 120})
    for (const int64_t k : {1, 2, 3, 8, 39}) {
      constexpr int64_t kRows = 29, kColumns = 70;
      const auto value = [&] {
        const int exponent = static_cast<int>(random() % static_cast<unsigned>(2 * exponents)) - exponents;
        const float mantissa = 1 + static_cast<float>(random() % 128) / 128;
        return bf16_to_float(float_to_bf16(std::ldexp(random() % 2 ? mantissa : -mantissa, exponent)));
      };
      std::vector<float> a(kRows * k), b(k * kColumns), c(kRows * kColumns);
      for (auto* values : {&a, &b, &c})
        for (float& v : *values) v = value();
      for (float& v : c) v *= std::ldexp(1.0f, -20);
      auto want = c;
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t j = 0; j < kColumns; ++j)
          for (int64_t d = 0; d < k; ++d)
            want[i * kColumns + j] = flushed(std::fma(flushed(a[i * k + d]), flushed(b[d * kColumns + j]),
                                                      flushed(want[i * kColumns + j])));
      Product product{.c = c.data(), .m = kRows, .n = kColumns, .k = k, .add = true, .round_to_bf16 = true};
      product.a = a.data();
      product.a_row_stride = k;
      product.b = b.data();
      product.b_row_stride = kColumns;
      native_bf16_product(product);
      for (size_t i = 0; i < c.size(); ++i) {
        if (std::isnan(want[i])) continue;  // infinities of both signs
        ASSERT_EQ(std::bit_cast<uint32_t>(c[i]), std::bit_cast<uint32_t>(want[i]))
            << exponents << " depth " << k << " at " << i << ": " << c[i] << " and " << want[i];
      }
    }
}

// The empty half of the last pair adds nothing, not even to the sign of a zero.
TEST(NativeBf16Product, AnOddDepthEndsWhereItEnds) {
  if (!has_native_bf16()) GTEST_SKIP() << "this processor has no bf16 dot products";
  const float a = 1, b = -0.0f;
  float c = -0.0f;
  Product product{.c = &c, .m = 1, .n = 1, .k = 1, .add = true, .round_to_bf16 = true};
  product.a = &a;
  product.a_row_stride = 1;
  product.b = &b;
  product.b_row_stride = 1;
  native_bf16_product(product);
  EXPECT_TRUE(std::signbit(c));
}

}  // namespace
}  // namespace ropd::kernels
