// Rows of a table by id, and the gradient that adds them back.
#pragma once
#include <cstdint>
#include <span>

#include "kernels/matmul.h"

namespace ropd::kernels {

// out [T, D] = table [V, D] at ids [T], widened to f32. Ids are in [0, V).
void embedding(std::span<float> out, std::span<const int32_t> ids, const WeightView& table);

// Adds grad_out [T, D] to the rows ids [T] of grad_table [V, D], tokens in order.
void embedding_grad(std::span<float> grad_table, std::span<const float> grad_out,
                    std::span<const int32_t> ids);

}  // namespace ropd::kernels
