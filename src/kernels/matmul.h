// Matrix products. Every element of every result is one chain of fused multiply-adds in order of the summed
// index,
//   c = fma(a[0], b[0], c0); c = fma(a[1], b[1], c); ...
// in f32, whatever the number of rows, threads or blocks. So a row's result never depends on its batch, a
// gradient summed over two microbatches equals the gradient of both at once, and a naive loop is a bit-exact
// twin on every instruction set with FMA. With Precision::bf16 both factors are rounded to bf16 first
// (products are then exact in f32). Native bf16 dot products add two products in an instruction, but one
// after the other with a rounding each, which is the same chain; only numbers below 2^-126 (factors and sums)
// are zero there, so such bits differ between machines and nothing else does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/update.h"
#include "tensor/dtype.h"

namespace ropd::kernels {

enum class Precision { f32, bf16 };

// A weight matrix W [N, K] as stored: row-major, one row per output. Not owned.
struct WeightView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0;     // N
  int64_t columns = 0;  // K
};

struct Product;

// W rearranged into column panels for products with few rows (decoding). Owned; constant after pack().
class PackedWeight {
 public:
  PackedWeight() = default;
  // bf16 halves the memory to read; f32 keeps all bits.
  static PackedWeight pack(const WeightView& weight, Precision precision);
  // Of Wᵀ: matmul() with it is matmul_grad_x().
  static PackedWeight pack_transposed(const WeightView& weight, Precision precision);
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  Precision precision() const { return precision_; }
  const std::byte* panels() const { return storage_.data(); }
  size_t bytes() const { return storage_.size(); }

 private:
  static PackedWeight pack(const Product& product);
  std::vector<std::byte> storage_;
  int64_t rows_ = 0, columns_ = 0;
  Precision precision_ = Precision::f32;
};

// y [M, N] = x [M, K] · Wᵀ. The two forms give the same bits.
void matmul(std::span<float> y, std::span<const float> x, const WeightView& weight, Precision precision);
void matmul(std::span<float> y, std::span<const float> x, const PackedWeight& weight,
            Update update = Update::replace);

// Several weights of one precision and one K applied to the same x; the same bits, but threads wait for each
// other once.
struct PackedOutput {
  std::span<float> y;
  const PackedWeight* weight;
};
void matmul(std::span<const PackedOutput> outputs, std::span<const float> x);

// grad_y [M, N] · W into grad_x [M, K].
void matmul_grad_x(std::span<float> grad_x, std::span<const float> grad_y, const WeightView& weight,
                   Precision precision, Update update = Update::add);

// Adds grad_yᵀ · x to grad_weight [N, K].
void matmul_grad_weight(std::span<float> grad_weight, std::span<const float> grad_y, std::span<const float> x,
                        int64_t rows, int64_t columns, Precision precision);

}  // namespace ropd::kernels
