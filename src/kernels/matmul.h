// Matrix products. Every element of every result is one chain of fused multiply-adds in order of the summed
// index,
//   c = fma(a[0], b[0], c0); c = fma(a[1], b[1], c); ...
// in f32, whatever the number of rows, threads or blocks. So a row's result never depends on its batch, a
// gradient summed over two microbatches equals the gradient of both at once, and a naive loop is a bit-exact
// twin on every instruction set with FMA. With Precision::bf16 both factors are rounded to bf16 first
// (products are then exact in f32). Native bf16 dot products add two products in an instruction, but one
// after the other with a rounding each, which is the same chain; only numbers below 2^-126 (factors and sums)
// are zero there, so such bits differ between machines and nothing else does.
//
// Precision::bf16_tiles rounds the factors in the same way and adds as matrix units do (Intel AMX), in blocks of
// 32 of the summed index from its begin on: in a block the even ones are one chain from zero and the odd ones
// another, and
//   c = c + (even + odd)
// once a block. That too is the same on every machine with FMA, and depends on nothing but the summed index.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/update.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace ropd::kernels {

enum class Precision { f32, bf16, bf16_tiles };

// Whether factors, keys and values are rounded to bf16, and weights and caches stored so.
constexpr bool is_bf16(Precision precision) { return precision != Precision::f32; }

// What a precision is called in configurations, on command lines and in records.
inline constexpr auto kPrecisionNames =
    std::to_array<std::string_view>({"f32", "bf16", "bf16_tiles"});  // by Precision
constexpr std::string_view name_of(Precision precision) {
  return kPrecisionNames[static_cast<size_t>(precision)];
}
// Of one of these names.
constexpr Precision precision_named(std::string_view name) {
  size_t i = 0;
  while (kPrecisionNames[i] != name) ++i;
  return static_cast<Precision>(i);
}

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
  const std::byte* panels() const { return std::as_bytes(storage_.span()).data(); }
  size_t bytes() const { return storage_.size() * sizeof(float); }

 private:
  static PackedWeight pack(const Product& product, Precision precision);
  Buffer storage_;  // bytes; panels lie on whole cache lines
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

// Adds grad_yᵀ · x to grad_weight [N, K]. Tokens are summed, so with bf16_tiles blocks begin anew with every
// sequence, [begin, next begin) of sequence_begins [B + 1]; empty: there is one. A sequence may be continued in
// another call behind a multiple of 32 tokens. So neither batches nor chunks show.
void matmul_grad_weight(std::span<float> grad_weight, std::span<const float> grad_y, std::span<const float> x,
                        int64_t rows, int64_t columns, Precision precision,
                        std::span<const int64_t> sequence_begins);
inline constexpr int64_t kTokenBlock = 32;

}  // namespace ropd::kernels
