#include "kernels/product.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ropd::kernels
