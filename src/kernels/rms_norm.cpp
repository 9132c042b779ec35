#include "kernels/rms_norm.h"

#include "kernels/instruction_sets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rms_norm.cpp"
#include <hwy/foreach_target.h>

#include "base/parallel.h"
#include "kernels/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace ropd::kernels::HWY_NAMESPACE {

[[gnu::flatten]] void norm_rows(float* y, float* inv_rms, const float* x, const float* weight, float eps,
                                int64_t rows, int64_t width) {
  for (int64_t t = 0; t < rows; ++t, x += width, y += width) {
    Lanes squares = broadcast(0.0f);
    for_lanes(width, [&](int64_t i, int64_t n) {
      const Lanes value = load(x + i, n);
      squares = fma(value, value, squares);
    });
    inv_rms[t] = 1.0f / std::sqrt(sum(squares) / static_cast<float>(width) + eps);
    const Lanes inverse = broadcast(inv_rms[t]);
    for_lanes(width,
              [&](int64_t i, int64_t n) { store(load(x + i, n) * inverse * load(weight + i, n), y + i, n); });
  }
}

// With xhat = x * inv_rms and g = grad_y * weight:  grad_x += inv_rms * (g - xhat * mean(g * xhat)).
template <Update kUpdate>
[[gnu::flatten]] HWY_INLINE void norm_grad_rows(float* grad_x, const float* grad_y, const float* x,
                                                const float* inv_rms, const float* weight, int64_t rows,
                                                int64_t width) {
  for (int64_t t = 0; t < rows; ++t, x += width, grad_x += width, grad_y += width) {
    const Lanes inverse = broadcast(inv_rms[t]);
    Lanes products = broadcast(0.0f);
    for_lanes(width, [&](int64_t i, int64_t n) {
      products = fma(load(grad_y + i, n) * load(weight + i, n), load(x + i, n) * inverse, products);
    });
    const Lanes mean = broadcast(-sum(products) / static_cast<float>(width));
    for_lanes(width, [&](int64_t i, int64_t n) {
      const Lanes g = load(grad_y + i, n) * load(weight + i, n);
      const Lanes before = kUpdate == Update::add ? load(grad_x + i, n) : broadcast(0.0f);
      store(fma(inverse, fma(load(x + i, n) * inverse, mean, g), before), grad_x + i, n);
    });
  }
}

void add_norm_grad(float* grad_x, const float* grad_y, const float* x, const float* inv_rms,
                   const float* weight, int64_t rows, int64_t width) {
  norm_grad_rows<Update::add>(grad_x, grad_y, x, inv_rms, weight, rows, width);
}
void replace_norm_grad(float* grad_x, const float* grad_y, const float* x, const float* inv_rms,
                       const float* weight, int64_t rows, int64_t width) {
  norm_grad_rows<Update::replace>(grad_x, grad_y, x, inv_rms, weight, rows, width);
}

// The columns [begin, end) of grad_weight, tokens in order.
[[gnu::flatten]] void norm_grad_weight(float* grad_weight, const float* grad_y, const float* x,
                                       const float* inv_rms, int64_t rows, int64_t width, int64_t begin,
                                       int64_t end) {
  for_lanes(end - begin, [&](int64_t i, int64_t n) {
    Lanes total = load(grad_weight + begin + i, n);
    for (int64_t t = 0; t < rows; ++t) {
      const int64_t at = t * width + begin + i;
      total = fma(load(grad_y + at, n), load(x + at, n) * broadcast(inv_rms[t]), total);
    }
    store(total, grad_weight + begin + i, n);
  });
}

}  // namespace ropd::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cassert>

namespace ropd::kernels {

HWY_EXPORT(norm_rows);
HWY_EXPORT(add_norm_grad);
HWY_EXPORT(replace_norm_grad);
HWY_EXPORT(norm_grad_weight);

void rms_norm(std::span<float> y, std::span<float> inv_rms, std::span<const float> x,
              std::span<const float> weight, float eps) {
  const int64_t width = static_cast<int64_t>(weight.size()), rows = static_cast<int64_t>(inv_rms.size());
  assert(x.size() == inv_rms.size() * weight.size() && y.size() == x.size());
  choose_instruction_set();
  const auto function = HWY_DYNAMIC_DISPATCH(norm_rows);
  const int64_t chunk = std::max<int64_t>(1, 4096 / width);
  parallel_chunks(rows, chunk, rows * width, [&](int64_t begin, int64_t end) {
    function(y.data() + begin * width, inv_rms.data() + begin, x.data() + begin * width, weight.data(), eps,
             end - begin, width);
  });
}

void rms_norm_grad(std::span<float> grad_x, std::span<float> grad_weight, std::span<const float> grad_y,
                   std::span<const float> x, std::span<const float> inv_rms, std::span<const float> weight,
                   Update update) {
  const int64_t width = static_cast<int64_t>(weight.size()), rows = static_cast<int64_t>(inv_rms.size());
  assert(x.size() == inv_rms.size() * weight.size() && grad_x.size() == x.size() &&
         grad_y.size() == x.size());
  assert(grad_weight.empty() || grad_weight.size() == weight.size());
  choose_instruction_set();
  if (!grad_weight.empty()) {  // first: grad_y may be about to be replaced
    const auto weight_function = HWY_DYNAMIC_DISPATCH(norm_grad_weight);
    parallel_chunks(width, 32, rows * width, [&](int64_t begin, int64_t end) {
      weight_function(grad_weight.data(), grad_y.data(), x.data(), inv_rms.data(), rows, width, begin, end);
    });
  }
  const auto rows_function =
      update == Update::add ? HWY_DYNAMIC_DISPATCH(add_norm_grad) : HWY_DYNAMIC_DISPATCH(replace_norm_grad);
  const int64_t chunk = std::max<int64_t>(1, 4096 / width);
  parallel_chunks(rows, chunk, rows * width, [&](int64_t begin, int64_t end) {
    rows_function(grad_x.data() + begin * width, grad_y.data() + begin * width, x.data() + begin * width,
                  inv_rms.data() + begin, weight.data(), end - begin, width);
  });
}

}  // namespace ropd::kernels
#endif
