#include "kernels/pair_packing.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "support/chosen_target.h"

namespace ropd::kernels {
namespace {

// Values that round up, down, to even, and the ones that are not finite.
std::vector<float> awkward_numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>((i * 7919) % 2003 - 1001) / 997.0f;
  if (count > 9) {
    values[3] = 1.0f + 1.0f / 256;  // a tie, to even: down
    values[5] = 1.0f + 3.0f / 256;  // a tie, to even: up
    values[7] = std::numeric_limits<float>::signaling_NaN();
    values[8] = -std::numeric_limits<float>::infinity();
    values[9] = std::numeric_limits<float>::denorm_min();
  }
  for (int64_t i = 14; i < count; i += 29)  // rounded as a number it would be -0
    values[static_cast<size_t>(i)] = std::bit_cast<float>(0x7fffffffu);
  return values;
}

template <class Check>
void for_every_instruction_set(const Check& check) {
  int tried = 0;
  for (const int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & target) == 0) continue;
    const test::ChosenTarget chosen(target);
    SCOPED_TRACE(hwy::TargetName(target));
    check();
    ++tried;
  }
  EXPECT_GE(tried, 2);
}

TEST(PairPacking, RowsAreWhatTheirDescriptionSays) {
  for_every_instruction_set([] {
    for (const int64_t rows : {1, 5, 8, 12})
      for (const int64_t depth : {1, 2, 15, 16, 39})
        for (const bool is_transposed : {false, true}) {
          constexpr int64_t kRow = 2, kDepth0 = 3, kAllRows = 15, kAllDepth = 45;
          const auto values = awkward_numbers(kAllRows * kAllDepth);
          Product p;
          p.a = values.data();
          p.a_row_stride = is_transposed ? 1 : kAllDepth;
          p.a_column_stride = is_transposed ? kAllRows : 1;
          const size_t size = static_cast<size_t>(rows * ((depth + 1) / 2 * 2));
          std::vector<Bf16> packed(size + 1, 0x7777);
          pack_pair_rows(packed.data(), p, kRow, rows, kDepth0, depth);
          EXPECT_EQ(packed.back(), 0x7777) << "written too far";
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t k = 0; k < (depth + 1) / 2 * 2; ++k) {
              const int64_t at = (kRow + r) * p.a_row_stride + (kDepth0 + k) * p.a_column_stride;
              const Bf16 expected = k < depth ? float_to_bf16(values[static_cast<size_t>(at)]) : kNoRow;
              ASSERT_EQ(packed[static_cast<size_t>(k / 2 * 2 * rows + 2 * r + 1 - k % 2)], expected)
                  << rows << " x " << depth << " at " << r << ", " << k;
            }
        }
  });
}

TEST(PairPacking, RowsForMatrixUnitsAreWhatTheirDescriptionSays) {
  for_every_instruction_set([] {
    for (const int64_t rows : {1, 5, 8, 12, 31, 32})
      for (const int64_t depth : {1, 2, 15, 31, 32, 39, 64, 70})
        for (const bool is_transposed : {false, true}) {
          constexpr int64_t kRow = 2, kDepth0 = 3, kAllRows = 35, kAllDepth = 75;
          const auto values = awkward_numbers(kAllRows * kAllDepth);
          Product p;
          p.a = values.data();
          p.a_row_stride = is_transposed ? 1 : kAllDepth;
          p.a_column_stride = is_transposed ? kAllRows : 1;
          const int64_t whole_depth = (depth + kTileDepth - 1) / kTileDepth * kTileDepth;
          std::vector<Bf16> packed(static_cast<size_t>(rows * whole_depth) + 1, 0x7777);
          pack_tile_rows(packed.data(), p, kRow, rows, kDepth0, depth);
          EXPECT_EQ(packed.back(), 0x7777) << "written too far";
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t k = 0; k < whole_depth; ++k) {
              const int64_t at = (kRow + r) * p.a_row_stride + (kDepth0 + k) * p.a_column_stride;
              const Bf16 expected = k < depth ? float_to_bf16(values[static_cast<size_t>(at)]) : kNoRow;
              const int64_t pair = (k / kTileDepth * rows + r) * kTileDepth + k % kTileDepth / 2 * 2;
              ASSERT_EQ(packed[static_cast<size_t>(pair + 1 - k % 2)], expected)
                  << rows << " x " << depth << " at " << r << ", " << k;
            }
        }
  });
}

// Some full panels and one that B fills partly, from every kind of memory.
TEST(PairPacking, PanelsAreWhatTheirDescriptionSays) {
  constexpr int64_t kColumns = 3 * kPairPanel + 5, kAllDepth = 45, kDepth0 = 3, kFirst = 1;
  const auto values = awkward_numbers(kColumns * kAllDepth);
  std::vector<uint16_t> halves, bf16;
  for (const float value : values) {
    halves.push_back(float_to_f16(value));
    bf16.push_back(float_to_bf16(value));
  }
  for_every_instruction_set([&] {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const auto& [depth, extra] :
           {std::pair<int64_t, int64_t>{1, 0}, {2, 30}, {15, 0}, {16, 16}, {39, 0}, {39, 24}})
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
          std::vector<Bf16> packed(static_cast<size_t>(panels * even_depth * kPairPanel), 0x7777);
          pack_pair_panels(packed.data(), p, kFirst, kFirst + panels, kDepth0, depth, even_depth);
          for (int64_t panel = 0; panel < panels; ++panel)
            for (int64_t k = 0; k < even_depth; ++k)
              for (int64_t j = 0; j < kPairPanel; ++j) {
                const int64_t column = (kFirst + panel) * kPairPanel + j;
                const size_t at =
                    static_cast<size_t>((kDepth0 + k) * p.b_row_stride + column * p.b_column_stride);
                const Bf16 expected = column >= kColumns || k >= depth ? kNoColumn
                                      : dtype == DType::bf16           ? bf16[at]
                                      : dtype == DType::f16 ? float_to_bf16(f16_to_float(halves[at]))
                                                            : float_to_bf16(values[at]);
                ASSERT_EQ(packed[static_cast<size_t>((panel * even_depth + k / 2 * 2) * kPairPanel + 2 * j +
                                                     1 - k % 2)],
                          expected)
                    << "depth " << depth << (is_transposed ? " transposed" : "") << " at " << k << ", "
                    << column;
              }
        }
  });
}

}  // namespace
}  // namespace ropd::kernels
