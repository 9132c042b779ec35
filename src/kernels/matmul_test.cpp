#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/threads.h"
#include "kernels/matmul_test_support.h"

namespace ropd::kernels {
namespace {

std::vector<float> numbers(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  uint32_t state = seed * 2654435761u + 12345u;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(state >> 8) - (1 << 23)) / (1 << 23);
  }
  return values;
}

std::vector<float> naive(const std::vector<float>& x, const std::vector<float>& w, int64_t m, int64_t n,
                         int64_t k, Precision precision) {
  std::vector<float> y(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      y[i * n + j] = summed(
          0, k, precision, [&](int64_t d) { return x[i * k + d]; }, [&](int64_t d) { return w[j * k + d]; });
  return y;
}

WeightView view(const std::vector<float>& w, int64_t n, int64_t k) { return {w.data(), DType::f32, n, k}; }

struct Shape {
  int64_t m, n, k;
};
const Shape kShapes[] = {{20, 50, 1000}, {150, 40, 800}, {1, 1, 1},     {1, 7, 3},    {2, 33, 17},
                         {3, 70, 300},   {4, 16, 256},   {5, 100, 257}, {6, 64, 64},  {7, 129, 31},
                         {13, 200, 96},  {150, 48, 96},  {31, 26, 513}, {1, 513, 700}};

TEST(Matmul, EqualsItsNaiveLoopBitForBit) {
  for (const auto precision : kPrecisions)
    for (const auto& [m, n, k] : kShapes) {
      const auto x = numbers(m * k, 1), w = numbers(n * k, 2);
      std::vector<float> y(m * n, 7.0f);
      matmul(y, x, view(w, n, k), precision);
      ASSERT_EQ(y, naive(x, w, m, n, k, precision)) << m << " " << n << " " << k;
    }
}

TEST(Matmul, PackedWeightsGiveTheSameBits) {
  for (const auto precision : kPrecisions)
    for (const auto& [m, n, k] : kShapes) {
      const auto x = numbers(m * k, 3), w = numbers(n * k, 4);
      std::vector<float> plain(m * n), packed(m * n, 5.0f);
      matmul(plain, x, view(w, n, k), precision);
      matmul(packed, x, PackedWeight::pack(view(w, n, k), precision));
      EXPECT_EQ(plain, packed) << m << "x" << n << "x" << k;
    }
}

// More rows, columns and depth than are packed at a time; some rows are checked against the naive loop.
TEST(Matmul, LargeProductsArePutTogetherFromTheirPieces) {
  const int64_t m = 1760, n = 1050, k = 3100;
  const auto x = numbers(m * k, 31), w = numbers(n * k, 32), grad_y = numbers(m * n, 33);
  for (const auto precision : {Precision::f32, Precision::bf16_tiles}) {
    std::vector<float> y(m * n), packed(m * n), grad_x(m * k, 1.0f), grad_weight(n * k, 1.0f);
    matmul(y, x, view(w, n, k), precision);
    matmul(packed, x, PackedWeight::pack(view(w, n, k), precision));
    EXPECT_EQ(y, packed);
    matmul_grad_x(grad_x, grad_y, view(w, n, k), precision);
    matmul_grad_weight(grad_weight, grad_y, x, n, k, precision, {});
    for (const int64_t i : {0, 71, 72, 1727, 1728, 1759}) {
      const auto row = std::vector<float>(x.begin() + i * k, x.begin() + (i + 1) * k);
      const auto want = naive(row, w, 1, n, k, precision);
      EXPECT_TRUE(std::equal(want.begin(), want.end(), y.begin() + i * n)) << i;
      for (int64_t d = 0; d < k; ++d)
        ASSERT_EQ(grad_x[i * k + d], summed(
                                         1, n, precision, [&](int64_t j) { return grad_y[i * n + j]; },
                                         [&](int64_t j) { return w[j * k + d]; }))
            << i << " " << d;
    }
    for (const int64_t j : {0, 1023, 1024, 1049})
      for (int64_t d = 0; d < k; ++d)
        ASSERT_EQ(grad_weight[j * k + d], summed(
                                              1, m, precision, [&](int64_t i) { return grad_y[i * n + j]; },
                                              [&](int64_t i) { return x[i * k + d]; }))
            << j << " " << d;
  }
}

TEST(Matmul, SeveralWeightsTogetherGiveTheBitsOfEach) {
  const int64_t k = 900, sizes[] = {256, 70, 513};
  std::vector<std::vector<float>> weights;
  for (const int64_t n : sizes) weights.push_back(numbers(n * k, static_cast<uint32_t>(n)));
  const size_t before = num_threads();
  for (const int threads : {1, 2, 3})
    for (const auto precision : kPrecisions)
      for (const int64_t m : {1, 3, 8, 40, 150}) {
        set_num_threads(threads);
        const auto x = numbers(m * k, 41);
        std::vector<PackedWeight> packed;
        std::vector<std::vector<float>> alone, together;
        for (size_t i = 0; i < weights.size(); ++i) {
          packed.push_back(PackedWeight::pack(view(weights[i], sizes[i], k), precision));
          alone.emplace_back(m * sizes[i]);
          together.emplace_back(m * sizes[i], 9.0f);
          matmul(alone.back(), x, packed.back());
        }
        std::vector<PackedOutput> outputs;
        for (size_t i = 0; i < weights.size(); ++i) outputs.push_back({together[i], &packed[i]});
        matmul(outputs, x);
        EXPECT_EQ(together, alone) << m << " rows, " << threads << " threads";
      }
  set_num_threads(before);
}

TEST(Matmul, StoredBf16WeightsEqualTheirFloatValues) {
  const int64_t m = 9, n = 50, k = 130;
  const auto x = numbers(m * k, 5), w = numbers(n * k, 6);
  std::vector<Bf16> stored(w.size());
  std::vector<float> widened(w.size());
  for (size_t i = 0; i < w.size(); ++i) widened[i] = bf16_to_float(stored[i] = float_to_bf16(w[i]));
  for (const auto precision : kPrecisions) {
    std::vector<float> from_float(m * n), from_bf16(m * n);
    matmul(from_float, x, view(widened, n, k), precision);
    matmul(from_bf16, x, {stored.data(), DType::bf16, n, k}, precision);
    EXPECT_EQ(from_float, from_bf16);
  }
}

TEST(Matmul, RowsDoNotDependOnTheirBatchOrThreads) {
  const int64_t m = 64, n = 300, k = 520;
  const auto x = numbers(m * k, 7), w = numbers(n * k, 8);
  for (const auto precision : kPrecisions) {
    std::vector<float> together(m * n);
    matmul(together, x, view(w, n, k), precision);
    for (const int threads : {1, 2, 3}) {
      const size_t before = num_threads();
      set_num_threads(threads);
      for (const int64_t batch : {1, 2, 3, 5, 17, 64}) {
        std::vector<float> parts(m * n);
        for (int64_t row = 0; row < m; row += batch) {
          const int64_t rows = std::min(batch, m - row);
          matmul(std::span(parts).subspan(row * n, rows * n), std::span(x).subspan(row * k, rows * k),
                 view(w, n, k), precision);
        }
        EXPECT_EQ(together, parts) << threads << " threads, " << batch << " rows at a time";
      }
      set_num_threads(before);
    }
  }
}

TEST(MatmulGradX, EqualsItsNaiveLoopAndAdds) {
  for (const auto precision : kPrecisions)
    for (const auto& [m, n, k] : kShapes) {
      const auto grad_y = numbers(m * n, 9), w = numbers(n * k, 10), begin = numbers(m * k, 11);
      auto grad_x = begin, want = begin;
      matmul_grad_x(grad_x, grad_y, view(w, n, k), precision);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t d = 0; d < k; ++d)
          want[i * k + d] = summed(
              want[i * k + d], n, precision, [&](int64_t j) { return grad_y[i * n + j]; },
              [&](int64_t j) { return w[j * k + d]; });
      ASSERT_EQ(grad_x, want) << m << " " << n << " " << k;
    }
}

TEST(MatmulGradX, PackedTransposedWeightsGiveTheSameBits) {
  for (const auto& [m, n, k] : kShapes)
    for (const auto precision : kPrecisions) {
      const auto grad_y = numbers(m * n, 17), w = numbers(n * k, 18), begin = numbers(m * k, 19);
      const auto packed = PackedWeight::pack_transposed(view(w, n, k), precision);
      for (const auto update : {Update::add, Update::replace}) {
        auto got = begin, want = begin;
        matmul(got, grad_y, packed, update);
        matmul_grad_x(want, grad_y, view(w, n, k), precision, update);
        ASSERT_EQ(got, want) << m << " " << n << " " << k;
      }
      // Replacing is adding to nothing.
      std::vector<float> replaced = begin, added(begin.size(), 0.0f);
      matmul_grad_x(replaced, grad_y, view(w, n, k), precision, Update::replace);
      matmul_grad_x(added, grad_y, view(w, n, k), precision);
      ASSERT_EQ(replaced, added);
    }
}

TEST(MatmulGradWeight, EqualsItsNaiveLoopAndAdds) {
  for (const auto precision : kPrecisions)
    for (const auto& [m, n, k] : kShapes) {
      const auto grad_y = numbers(m * n, 12), x = numbers(m * k, 13), begin = numbers(n * k, 14);
      auto grad_weight = begin, want = begin;
      matmul_grad_weight(grad_weight, grad_y, x, n, k, precision, {});
      for (int64_t j = 0; j < n; ++j)
        for (int64_t d = 0; d < k; ++d)
          want[j * k + d] = summed(
              want[j * k + d], m, precision, [&](int64_t i) { return grad_y[i * n + j]; },
              [&](int64_t i) { return x[i * k + d]; });
      ASSERT_EQ(grad_weight, want) << m << " " << n << " " << k;
    }
}

TEST(MatmulGradWeight, TwoMicrobatchesEqualOne) {
  const int64_t m = 300, n = 40, k = 70, first = 131;  // odd: a pair of tokens is torn apart
  const auto grad_y = numbers(m * n, 15), x = numbers(m * k, 16);
  const int64_t both[] = {0, 40, first, m}, of_first[] = {0, 40, first}, of_second[] = {0, m - first};
  for (const auto precision : kPrecisions) {
    std::vector<float> once(n * k), twice(n * k);
    matmul_grad_weight(once, grad_y, x, n, k, precision, both);
    matmul_grad_weight(twice, std::span(grad_y).first(first * n), std::span(x).first(first * k), n, k,
                       precision, of_first);
    matmul_grad_weight(twice, std::span(grad_y).subspan(first * n), std::span(x).subspan(first * k), n, k,
                       precision, of_second);
    EXPECT_EQ(once, twice);
  }
}

// Behind whole blocks a sequence may be torn apart.
TEST(MatmulGradWeight, ASequenceGoesOnBehindWholeBlocks) {
  const int64_t m = 100, n = 9, k = 20, first = 2 * kTokenBlock;
  const auto grad_y = numbers(m * n, 20), x = numbers(m * k, 21);
  std::vector<float> once(n * k), twice(n * k);
  matmul_grad_weight(once, grad_y, x, n, k, Precision::bf16_tiles, {});
  matmul_grad_weight(twice, std::span(grad_y).first(first * n), std::span(x).first(first * k), n, k,
                     Precision::bf16_tiles, {});
  matmul_grad_weight(twice, std::span(grad_y).subspan(first * n), std::span(x).subspan(first * k), n, k,
                     Precision::bf16_tiles, {});
  EXPECT_EQ(once, twice);
}

TEST(Precision, HasAName) {
  for (const auto precision : kPrecisions) EXPECT_EQ(precision_named(name_of(precision)), precision);
  EXPECT_EQ(name_of(Precision::bf16_tiles), "bf16_tiles");
}

}  // namespace
}  // namespace ropd::kernels
