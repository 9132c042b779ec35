#include "kernels/product.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "base/threads.h"

namespace ropd::kernels {
namespace {

struct Case {
  std::vector<float> a, b, c;
  std::vector<std::byte> panels;
  Product product;  // over these; of A and B as stored, or of A transposed and B row by row
  Case(int64_t m, int64_t n, int64_t k, int exponents, bool is_transposed, uint32_t seed)
      : a(static_cast<size_t>(m * k)), b(static_cast<size_t>(n * k)), c(static_cast<size_t>(m * n)) {
    std::mt19937 random(seed);
    for (auto* values : {&a, &b, &c})
      for (float& value : *values)
        value =
            std::ldexp(static_cast<float>(static_cast<int32_t>(random())),
                       static_cast<int>(random() % static_cast<unsigned>(2 * exponents)) - exponents - 32);
    product = {.c = c.data(), .m = m, .n = n, .k = k, .add = seed % 2 == 1, .round_to_bf16 = true};
    product.a = a.data();
    product.a_row_stride = is_transposed ? 1 : k;
    product.a_column_stride = is_transposed ? m : 1;
    product.b = b.data();
    product.b_row_stride = is_transposed ? n : 1;
    product.b_column_stride = is_transposed ? 1 : k;
  }
  void pack() {
    const auto [columns, unit] = tiles_layout();
    panels.resize(static_cast<size_t>((product.n + columns - 1) / columns * columns *
                                      ((product.k + unit - 1) / unit * unit) * 2));
    tiles_pack(panels.data(), product);
    product.panels = panels.data();
  }
};

// The emulation is the definition (product_tiles_test.cpp). Sums of all magnitudes, so that they absorb and
// cancel; every height of a tile, ends of panels, several depth blocks and row blocks.
TEST(AmxProduct, GivesTheBitsOfItsEmulation) {
  if (!has_amx()) GTEST_SKIP() << "this processor has no AMX";
  const size_t before = num_threads();
  uint32_t seed = 0;
  for (const int64_t m : {1, 2, 3, 15, 16, 17, 31, 32, 33, 40, 65, 300})
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {33, 31}, {64, 32}, {70, 65}, {129, 1100}})
      for (const bool is_transposed : {false, true}) {
        set_num_threads(seed % 3 + 1);
        Case on_tiles(m, n, k, seed % 5 ? 3 : 30, is_transposed, seed);
        Case emulated(m, n, k, seed % 5 ? 3 : 30, is_transposed, seed);
        if (seed % 4 == 0) on_tiles.pack();
        amx_product(on_tiles.product);
        tiles_product(emulated.product);
        ASSERT_EQ(on_tiles.c, emulated.c) << m << " x " << n << " x " << k << ", case " << seed;
        ++seed;
      }
  set_num_threads(before);
}

TEST(AmxProduct, SeveralTogetherGiveTheBitsOfEach) {
  if (!has_amx()) GTEST_SKIP() << "this processor has no AMX";
  const size_t before = num_threads();
  set_num_threads(3);
  for (const int64_t m : {1, 8, 50}) {
    Case first(m, 200, 900, 3, false, 2), second(m, 70, 900, 3, false, 2), alone(m, 70, 900, 3, false, 2);
    for (Case* c : {&first, &second, &alone}) c->pack();
    second.product.a = first.product.a;
    alone.product.a = first.product.a;
    const Product both[] = {first.product, second.product};
    amx_products(both, 2);
    amx_product(alone.product);
    EXPECT_EQ(second.c, alone.c);
  }
  set_num_threads(before);
}

// The one difference from the emulation.
TEST(AmxProduct, TakesTinyNumbersAsZero) {
  if (!has_amx()) GTEST_SKIP() << "this processor has no AMX";
  const float a = 0x1p-130f, b = 0x1p10f;
  float c = 1;
  Product product{.c = &c, .m = 1, .n = 1, .k = 1, .round_to_bf16 = true};
  product.a = &a;
  product.a_row_stride = 1;
  product.b = &b;
  product.b_row_stride = 1;
  amx_product(product);
  EXPECT_EQ(c, 0.0f);
  tiles_product(product);
  EXPECT_EQ(c, 0x1p-120f);
}

}  // namespace
}  // namespace ropd::kernels
