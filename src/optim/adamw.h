// AdamW (Loshchilov & Hutter 2019) over flat FP32 storage; t counts the updates, this one included.
//   g = gradient_scale * gradient
//   m = beta1 m + (1 - beta1) g            v = beta2 v + (1 - beta2) g^2
//   p = p - [ lr weight_decay p + lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps) ]
// Decay and step are added before they meet p: at lr 1e-6, p (1 - lr weight_decay) alone would round to p in
// FP32. Every element is independent and every operation IEEE, so the bits do not depend on threads or
// instruction set.
#pragma once
#include <cstdint>
#include <span>

namespace ropd::optim {

struct AdamWSettings {
  double learning_rate = 1e-6;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // on every parameter, as the public trainer has it
};

// The optimizer's state is m, v and the number of updates; saving them and restoring them is exact.
// The storage of m and v belongs to the caller and must live as long as this. Not thread-safe; threads
// inside.
class AdamW {
 public:
  // m and v [N] must be zero, or hold a saved state together with its number of updates.
  AdamW(const AdamWSettings& settings, std::span<float> m, std::span<float> v, uint64_t updates = 0);

  // Changes parameters [N], m and v in one pass. gradient_scale is the clip coefficient; the gradient is only
  // read.
  void update(std::span<float> parameters, std::span<const float> gradient, double gradient_scale = 1.0);

  uint64_t updates() const { return updates_; }
  std::span<const float> m() const { return m_; }
  std::span<const float> v() const { return v_; }
  const AdamWSettings& settings() const { return settings_; }
  void set_learning_rate(double learning_rate) { settings_.learning_rate = learning_rate; }

 private:
  AdamWSettings settings_;
  std::span<float> m_;  // [N]
  std::span<float> v_;  // [N]
  uint64_t updates_ = 0;
};

}  // namespace ropd::optim
