#include "kernels/native_packing.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace ropd::kernels {
namespace {

// Values that round up, down, to even, and the ones that are not finite; none below 2^-126.
std::vector<float> awkward_numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>((i * 7919) % 2003 - 1001) / 997.0f;
  for (int64_t i = 3; i + 4 < count; i += 67) {
    values[static_cast<size_t>(i)] = 1.0f + 1.0f / 256;      // a tie, to even: down
    values[static_cast<size_t>(i + 1)] = 1.0f + 3.0f / 256;  // a tie, to even: up
    values[static_cast<size_t>(i + 2)] = std::numeric_limits<float>::signaling_NaN();
    values[static_cast<size_t>(i + 3)] = -std::numeric_limits<float>::infinity();
    values[static_cast<size_t>(i + 4)] = std::numeric_limits<float>::max();  // rounds to infinity
  }
  return values;
}

constexpr Bf16 kUntouched = 0x7777;

TEST(NativePacking, RowsAreThoseOfPairPacking) {
  if (!has_native_bf16()) GTEST_SKIP() << "this processor has no bf16 dot products";
  constexpr int64_t kRow = 2, kDepth0 = 3, kAllRows = 15, kAllDepth = 140;
  const auto values = awkward_numbers(kAllRows * kAllDepth);
  for (int64_t rows = 1; rows <= kMaxPairRows; ++rows)
    for (const int64_t depth : {1, 2, 15, 16, 31, 32, 33, 64, 100, 129})
      for (const int64_t form : {0, 1, 2}) {  // rows, columns, or neither lie close together
        Product p;
        p.a = values.data();
        p.a_row_stride = form == 0 ? kAllDepth : form;
        p.a_column_stride = form == 0 ? 1 : kAllRows;
        if (form == 2) p.a_column_stride = 1 + kAllRows % 7;
        const size_t size = static_cast<size_t>(rows * ((depth + 1) / 2 * 2));
        std::vector<Bf16> expected(size + 32, kUntouched), packed(size + 32, kUntouched);
        pack_pair_rows(expected.data(), p, kRow, rows, kDepth0, depth);
        pack_native_rows(packed.data(), p, kRow, rows, kDepth0, depth);
        ASSERT_EQ(packed, expected) << rows << " x " << depth << ", form " << form;
      }
}

TEST(NativePacking, PanelsAreThoseOfPairPacking) {
  if (!has_native_bf16()) GTEST_SKIP() << "this processor has no bf16 dot products";
  constexpr int64_t kColumns = 3 * kPairPanel + 5, kAllDepth = 140, kDepth0 = 3, kFirst = 1;
  const auto values = awkward_numbers(kColumns * kAllDepth);
  std::vector<uint16_t> halves, bf16;
  for (const float value : values) {
    halves.push_back(float_to_f16(value));
    bf16.push_back(float_to_bf16(value));
  }
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const int64_t depth : {1, 2, 9, 31, 32, 33, 64, 100, 129})
      for (const int64_t extra : {0, 30})
        for (const bool is_transposed : {false, true}) {
          Product p;
          p.n = kColumns;
          p.b_dtype = dtype;
          p.b = dtype == DType::f32   ? static_cast<const void*>(values.data())
                : dtype == DType::f16 ? halves.data()
                                      : bf16.data();
          p.b_row_stride = is_transposed ? 1 : kColumns;
          p.b_column_stride = is_transposed ? kAllDepth : 1;
          const int64_t panels = (kColumns + kPairPanel - 1) / kPairPanel - kFirst,
                        even_depth = (depth + 1) / 2 * 2 + extra;
          const size_t size = static_cast<size_t>(panels * even_depth * kPairPanel);
          std::vector<Bf16> expected(size + 32, kUntouched), packed(size + 32, kUntouched);
          pack_pair_panels(expected.data(), p, kFirst, kFirst + panels, kDepth0, depth, even_depth);
          pack_native_panels(packed.data(), p, kFirst, kFirst + panels, kDepth0, depth, even_depth);
          ASSERT_EQ(packed, expected) << "depth " << depth << (is_transposed ? " transposed" : "");
        }
}

// The product takes such a factor as zero in either form.
TEST(NativePacking, TinyNumbersAreZeros) {
  if (!has_native_bf16()) GTEST_SKIP() << "this processor has no bf16 dot products";
  const std::vector<float> values(64, std::numeric_limits<float>::denorm_min());
  Product p;
  p.a = values.data();
  p.a_row_stride = 64;
  std::vector<Bf16> packed(64, kUntouched);
  pack_native_rows(packed.data(), p, 0, 1, 0, 64);
  EXPECT_EQ(packed, std::vector<Bf16>(64, 0));
}

}  // namespace
}  // namespace ropd::kernels
