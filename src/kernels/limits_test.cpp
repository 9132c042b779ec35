#include "kernels/limits.h"

#include <gtest/gtest.h>

#include "kernels/product.h"

namespace ropd::kernels {
namespace {

TEST(MeasureLimits, GivesRatesOfARealMachine) {
  const auto limits = measure_limits(0.01);
  EXPECT_GT(limits.f32_flops, 1e8);
  EXPECT_LT(limits.f32_flops, 1e16);
  EXPECT_GT(limits.bf16_flops, 1e8);
  EXPECT_LT(limits.bf16_flops, 1e16);
  EXPECT_GT(limits.tiles_flops, 1e8);
  EXPECT_LT(limits.tiles_flops, 1e16);
  EXPECT_GT(limits.read_bytes, 1e7);
}

TEST(DescribeKernels, NamesInstructionSetAndKindOfBf16) {
  const std::string text = describe_kernels();
  EXPECT_NE(text.find("; bf16 products "), std::string::npos) << text;
  EXPECT_EQ(text.find("native") != std::string::npos, prefers_native_bf16());
  EXPECT_EQ(text.find("AMX") != std::string::npos, has_matrix_units());
}

TEST(Rate, IsSustainedAtMostAtItsBest) {
  for (const Rate& rate :
       {measure_multiply_adds(0.02), measure_product(0.02, Precision::bf16), measure_reading(0.02)}) {
    EXPECT_GT(rate.sustained, 0);
    EXPECT_LE(rate.sustained, rate.best);
  }
}

}  // namespace
}  // namespace ropd::kernels
