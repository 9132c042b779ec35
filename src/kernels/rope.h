// Rotary position embedding in the half-rotation convention of Hugging Face: pair i of a head is (x[i], x[i +
// E/2]), turned by position * inverse_frequency[i]. Angles are computed in double and rounded once.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ropd::kernels {

// Constant after construction; read by many threads.
struct RopeTable {
  int64_t num_positions = 0;
  int64_t head_dim = 0;       // E, even
  std::vector<float> cosine;  // [num_positions, E/2]
  std::vector<float> sine;    // [num_positions, E/2]
};

// theta^(-2i/E), [E/2].
std::vector<double> rope_inverse_frequencies(int64_t head_dim, double theta);

// cos and sin are multiplied by `factor` (1 but for scaled variants).
RopeTable make_rope_table(int64_t num_positions, std::span<const double> inverse_frequencies,
                          double factor = 1.0);

// Turns x [T, heads, E] in place; positions [T] index the table.
void rope(std::span<float> x, std::span<const int32_t> positions, const RopeTable& table, int64_t num_heads);

// The gradient: the inverse rotation, in place on grad [T, heads, E].
void rope_grad(std::span<float> grad, std::span<const int32_t> positions, const RopeTable& table,
               int64_t num_heads);

}  // namespace ropd::kernels
