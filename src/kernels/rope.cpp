#include "kernels/rope.h"

#include "kernels/instruction_sets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rope.cpp"
#include <hwy/foreach_target.h>

#include "base/parallel.h"
#include "kernels/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

// One token: x [heads, 2 * half] turned by the angles cosine, sign * sine [half].
[[gnu::flatten]] void rotate_token(float* x, const float* cosine, const float* sine, float sign,
                                   int64_t num_heads, int64_t half) {
  const Lanes signs = broadcast(sign), minus = broadcast(-1.0f);
  for (int64_t head = 0; head < num_heads; ++head, x += 2 * half)
    for_lanes(half, [&](int64_t i, int64_t n) {
      const Lanes c = load(cosine + i, n), s = load(sine + i, n) * signs;
      const Lanes first = load(x + i, n), second = load(x + half + i, n);
      store(fma(first, c, second * s * minus), x + i, n);
      store(fma(second, c, first * s), x + half + i, n);
    });
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cassert>

namespace ropd::kernels {

HWY_EXPORT(rotate_token);

namespace {

void rotate(std::span<float> x, std::span<const int32_t> positions, const RopeTable& table, int64_t num_heads,
            float sign) {
  const int64_t half = table.head_dim / 2, row = num_heads * table.head_dim;
  const int64_t tokens = static_cast<int64_t>(positions.size());
  assert(static_cast<int64_t>(x.size()) == tokens * row);
  choose_instruction_set();
  const auto function = HWY_DYNAMIC_DISPATCH(rotate_token);
  parallel_chunks(tokens, std::max<int64_t>(1, 4096 / row), tokens * row, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t position = positions[static_cast<size_t>(t)];
      assert(position >= 0 && position < table.num_positions);
      function(x.data() + t * row, table.cosine.data() + position * half, table.sine.data() + position * half,
               sign, num_heads, half);
    }
  });
}

}  // namespace

std::vector<double> rope_inverse_frequencies(int64_t head_dim, double theta) {
  assert(head_dim % 2 == 0);
  std::vector<double> result(static_cast<size_t>(head_dim / 2));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
  return result;
}

RopeTable make_rope_table(int64_t num_positions, std::span<const double> inverse_frequencies, double factor) {
  const int64_t half = static_cast<int64_t>(inverse_frequencies.size());
  RopeTable table{num_positions, 2 * half, {}, {}};
  table.cosine.resize(static_cast<size_t>(num_positions * half));
  table.sine.resize(table.cosine.size());
  parallel_chunks(num_positions, 64, num_positions * half * 32, [&](int64_t begin, int64_t end) {
    for (int64_t position = begin; position < end; ++position)
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(position) * inverse_frequencies[static_cast<size_t>(i)];
        table.cosine[static_cast<size_t>(position * half + i)] = static_cast<float>(factor * std::cos(angle));
        table.sine[static_cast<size_t>(position * half + i)] = static_cast<float>(factor * std::sin(angle));
      }
  });
  return table;
}

void rope(std::span<float> x, std::span<const int32_t> positions, const RopeTable& table, int64_t num_heads) {
  rotate(x, positions, table, num_heads, 1.0f);
}

void rope_grad(std::span<float> grad, std::span<const int32_t> positions, const RopeTable& table,
               int64_t num_heads) {
  rotate(grad, positions, table, num_heads, -1.0f);
}

}  // namespace ropd::kernels
#endif
