#include "kernels/product.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ropd::kernels
