#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ropd {
namespace {

TEST(F16, EveryValueSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const bool is_nan = (half & 0x7c00) == 0x7c00 && (half & 0x3ff) != 0;
    EXPECT_EQ(std::isnan(f16_to_float(half)), is_nan) << bits;
    EXPECT_EQ(float_to_f16(f16_to_float(half)), is_nan ? (half | 0x200) : half) << bits;
  }
}

TEST(F16, HasTheKnownValues) {
  EXPECT_EQ(f16_to_float(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_float(0xc000), -2.0f);
  EXPECT_EQ(f16_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_float(0x0400), 0x1p-14f);
  EXPECT_EQ(f16_to_float(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_float(0x3555), 0.333251953125f);
  EXPECT_EQ(f16_to_float(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(f16_to_float(0x8000)));
}

// Between two neighbours the nearer one is taken and the middle goes to the even one.
TEST(F16, RoundsToNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
    const float middle = (f16_to_float(low) + f16_to_float(high)) / 2;
    EXPECT_EQ(float_to_f16(middle), bits % 2 == 0 ? low : high) << bits;
    EXPECT_EQ(float_to_f16(std::nextafter(middle, 0.0f)), low) << bits;
    EXPECT_EQ(float_to_f16(std::nextafter(middle, 1e9f)), high) << bits;
    EXPECT_EQ(float_to_f16(-middle), 0x8000 | (bits % 2 == 0 ? low : high)) << bits;
  }
  EXPECT_EQ(float_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_f16(1e30f), 0x7c00);
}

TEST(Bf16, EveryValueSurvivesAndRoundsToEven) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto value = static_cast<Bf16>(bits);
    const bool is_nan = (value & 0x7f80) == 0x7f80 && (value & 0x7f) != 0;
    EXPECT_EQ(float_to_bf16(bf16_to_float(value)), is_nan ? (value | 0x40) : value) << bits;
  }
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
}

TEST(DType, HasSizesAndSafetensorsNames) {
  EXPECT_EQ(dtype_bytes(DType::f32), 4u);
  EXPECT_EQ(dtype_bytes(DType::f16), 2u);
  EXPECT_EQ(dtype_bytes(DType::bf16), 2u);
  EXPECT_EQ(dtype_name(DType::bf16), "BF16");
}

}  // namespace
}  // namespace ropd
