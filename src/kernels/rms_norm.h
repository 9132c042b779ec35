// RMS normalisation and its gradient.
//   y[t] = weight * x[t] / sqrt(mean(x[t]^2) + eps)
// Rows are independent, so splitting a batch never changes a result. A row is a token (D = width) or one head
// of a token (D = head size). The mean uses 16 partial sums whatever the vector width of the machine.
#pragma once
#include <span>

#include "kernels/update.h"

namespace ropd::kernels {

// Writes y [T, D] and inv_rms [T]; the gradient needs inv_rms. y may be x.
void rms_norm(std::span<float> y, std::span<float> inv_rms, std::span<const float> x,
              std::span<const float> weight, float eps);

// Adds to grad_weight [D] (tokens in order), which may be empty: not wanted. Adds to grad_x [T, D] or
// replaces it; where it is replaced grad_x may be grad_y.
void rms_norm_grad(std::span<float> grad_x, std::span<float> grad_weight, std::span<const float> grad_y,
                   std::span<const float> x, std::span<const float> inv_rms, std::span<const float> weight,
                   Update update = Update::add);

}  // namespace ropd::kernels
