#include "optim/adamw.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/error.h"
#include "base/parallel.h"

namespace ropd::optim {
namespace {

constexpr size_t kBlock = 16384;  // four arrays of 64 KiB: what a thread works on stays in its L2

struct Factors {
  float gradient_scale, beta1, one_minus_beta1, beta2, one_minus_beta2;
  float decay;                  // lr * weight_decay
  float step;                   // lr / (1 - beta1^t)
  float inverse_root_of_bias2;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
};

void update_block(float* __restrict parameters, float* __restrict m, float* __restrict v,
                  const float* __restrict gradient, size_t size, const Factors& f) {
#pragma omp simd
  for (size_t i = 0; i < size; ++i) {
    const float g = f.gradient_scale * gradient[i];
    const float new_m = f.beta1 * m[i] + f.one_minus_beta1 * g;
    const float new_v = f.beta2 * v[i] + f.one_minus_beta2 * (g * g);
    m[i] = new_m;
    v[i] = new_v;
    const float denominator = std::sqrt(new_v) * f.inverse_root_of_bias2 + f.epsilon;
    parameters[i] -= f.decay * parameters[i] + f.step * (new_m / denominator);
  }
}

}  // namespace

AdamW::AdamW(const AdamWSettings& settings, std::span<float> m, std::span<float> v, uint64_t updates)
    : settings_(settings), m_(m), v_(v), updates_(updates) {
  assert(m.size() == v.size());
  if (!(settings.learning_rate >= 0)) fail("learning_rate must be >= 0, got ", settings.learning_rate);
  if (!(settings.beta1 >= 0 && settings.beta1 < 1)) fail("betas[0] must be in [0, 1), got ", settings.beta1);
  if (!(settings.beta2 >= 0 && settings.beta2 < 1)) fail("betas[1] must be in [0, 1), got ", settings.beta2);
  if (!(settings.epsilon > 0)) fail("epsilon must be > 0, got ", settings.epsilon);
  if (!(settings.weight_decay >= 0)) fail("weight_decay must be >= 0, got ", settings.weight_decay);
}

void AdamW::update(std::span<float> parameters, std::span<const float> gradient, double gradient_scale) {
  assert(parameters.size() == m_.size() && gradient.size() == m_.size());
  ++updates_;
  const double t = static_cast<double>(updates_);
  const double lr = settings_.learning_rate;
  const Factors factors = {
      .gradient_scale = static_cast<float>(gradient_scale),
      .beta1 = static_cast<float>(settings_.beta1),
      .one_minus_beta1 = static_cast<float>(1 - settings_.beta1),
      .beta2 = static_cast<float>(settings_.beta2),
      .one_minus_beta2 = static_cast<float>(1 - settings_.beta2),
      .decay = static_cast<float>(lr * settings_.weight_decay),
      .step = static_cast<float>(lr / (1 - std::pow(settings_.beta1, t))),
      .inverse_root_of_bias2 = static_cast<float>(1 / std::sqrt(1 - std::pow(settings_.beta2, t))),
      .epsilon = static_cast<float>(settings_.epsilon),
  };
  const int64_t num_blocks = static_cast<int64_t>((m_.size() + kBlock - 1) / kBlock);
  parallel_chunks(num_blocks, 1, 8 * static_cast<int64_t>(m_.size()), [&](int64_t block, int64_t) {
    const size_t begin = static_cast<size_t>(block) * kBlock;
    const size_t size = std::min(kBlock, m_.size() - begin);
    update_block(parameters.data() + begin, m_.data() + begin, v_.data() + begin, gradient.data() + begin,
                 size, factors);
  });
}

}  // namespace ropd::optim
