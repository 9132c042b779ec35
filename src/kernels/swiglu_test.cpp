#include "kernels/swiglu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/threads.h"
#include "kernels/elementary.h"
#include "support/gradient_check.h"
#include "tensor/dtype.h"

namespace ropd::kernels {
namespace {

using ropd::test::gradient_check;
using ropd::test::random_values;

TEST(Swiglu, HasTheBitsOfTheNaiveTwinOverOddSizes) {
  for (const size_t count : {1, 15, 16, 17, 100, 20000}) {
    const auto gate = random_values(count, 1, 3.0f), up = random_values(count, 2);
    std::vector<float> out(count);
    swiglu(out, gate, up);
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(out[i], gate[i] * (1.0f / (1.0f + exp(0.0f - gate[i]))) * up[i]);
  }
}

TEST(Swiglu, IsFiniteForLargeGates) {
  const std::vector<float> gate = {-200.0f, 200.0f}, up = {1.0f, 1.0f}, grad_out = {1.0f, 1.0f};
  std::vector<float> out(2), grad_gate(2), grad_up(2);
  swiglu(out, gate, up);
  swiglu_grad(grad_gate, grad_up, grad_out, gate, up);
  EXPECT_EQ(out[0], 0.0f);
  EXPECT_EQ(out[1], 200.0f);
  EXPECT_EQ(grad_gate[0], 0.0f);
  EXPECT_EQ(grad_gate[1], 1.0f);
}

TEST(Swiglu, GradientAgreesWithCentralDifferences) {
  auto gate = random_values(37, 3, 2.0f), up = random_values(37, 4);
  const auto grad_out = random_values(37, 5);
  std::vector<float> grad_gate(37), grad_up(37);
  swiglu_grad(grad_gate, grad_up, grad_out, gate, up);
  const auto loss = [&] {
    double total = 0;
    for (size_t i = 0; i < gate.size(); ++i)
      total += gate[i] / (1.0 + std::exp(-static_cast<double>(gate[i]))) * up[i] * grad_out[i];
    return total;
  };
  gradient_check("gate", gate, grad_gate, loss, 1e-5, 1e-3f);
  gradient_check("up", up, grad_up, loss, 1e-5, 1e-3f);
}

TEST(Swiglu, MayWriteOverItsInputs) {
  const auto gate = random_values(33, 6), up = random_values(33, 7), grad_out = random_values(33, 8);
  std::vector<float> out(33), grad_gate(33), grad_up(33), in_place = gate, grad_in_place = grad_out;
  swiglu(out, gate, up);
  swiglu(in_place, in_place, up);
  EXPECT_EQ(out, in_place);
  swiglu_grad(grad_gate, grad_up, grad_out, gate, up);
  std::vector<float> grad_gate2(33);
  swiglu_grad(grad_gate2, grad_in_place, grad_in_place, gate, up);
  EXPECT_EQ(grad_gate, grad_gate2);
  EXPECT_EQ(grad_up, grad_in_place);
}

TEST(Add, IsElementwise) {
  auto y = random_values(12345, 9);
  const auto before = y, x = random_values(12345, 10);
  add(y, x);
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], before[i] + x[i]);
}

TEST(BiasAdd, AddsToEveryRow) {
  auto x = random_values(5 * 19, 11);
  const auto before = x, bias = random_values(19, 12);
  bias_add(x, bias);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], before[i] + bias[i % 19]);
}

TEST(BiasAdd, GradientSumsTokensInOrderFromWhatIsThere) {
  for (const int threads : {1, 3}) {
    const size_t before = num_threads();
    set_num_threads(threads);
    const size_t rows = 700, width = 67;
    const auto grad_y = random_values(rows * width, 13);
    auto grad_bias = random_values(width, 14);
    auto expected = grad_bias;
    for (size_t t = 0; t < rows; ++t)
      for (size_t i = 0; i < width; ++i) expected[i] += grad_y[t * width + i];
    bias_add_grad(grad_bias, std::span(grad_y).first(300 * width));
    bias_add_grad(grad_bias, std::span(grad_y).subspan(300 * width));
    set_num_threads(before);
    EXPECT_EQ(grad_bias, expected);
  }
}

TEST(RoundToBf16, RoundsToNearestEven) {
  std::vector<float> x = {1.0f,  1.00390625f, 1.01171875f, -3.3e38f, std::numeric_limits<float>::quiet_NaN(),
                          1e-40f};
  const auto before = x;
  round_to_bf16(x);
  EXPECT_EQ(x[0], 1.0f);
  EXPECT_EQ(x[1], 1.0f);       // a tie, to even
  EXPECT_EQ(x[2], 1.015625f);  // a tie, to even
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_TRUE(i == 4 || x[i] == bf16_to_float(float_to_bf16(before[i]))) << i;
  EXPECT_TRUE(std::isnan(x[4]));
}

}  // namespace
}  // namespace ropd::kernels
