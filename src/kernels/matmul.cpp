#include "kernels/matmul.h"

#include <cassert>
#include <utility>
#include <vector>

#include "kernels/product.h"

namespace ropd::kernels {
namespace {

// Native bf16 dot products where they are faster; the portable kernels, which give the same bits, elsewhere and
// for f32.
bool is_native(Precision precision) { return precision == Precision::bf16 && prefers_native_bf16(); }

void run(const Product& product, Precision precision) {
  if (is_native(precision))
    native_bf16_product(product);
  else
    portable_product(product);
}

Product weight_product(const WeightView& weight, Precision precision) {
  Product product;
  product.n = weight.rows;
  product.k = weight.columns;
  product.round_to_bf16 = precision == Precision::bf16;
  product.b = weight.data;
  product.b_dtype = weight.dtype;
  product.b_row_stride = 1;  // B = Wᵀ
  product.b_column_stride = weight.columns;
  return product;
}

Product transposed_product(const WeightView& weight, Precision precision) {
  Product product = weight_product(weight, precision);
  std::swap(product.n, product.k);
  std::swap(product.b_row_stride, product.b_column_stride);  // B = W
  return product;
}

Product packed_product(std::span<float> y, std::span<const float> x, const PackedWeight& weight) {
  Product product;
  product.n = weight.rows();
  product.k = weight.columns();
  product.m = static_cast<int64_t>(x.size()) / weight.columns();
  assert(static_cast<int64_t>(x.size()) == product.m * product.k &&
         static_cast<int64_t>(y.size()) == product.m * product.n);
  product.round_to_bf16 = weight.precision() == Precision::bf16;
  product.a = x.data();
  product.a_row_stride = product.k;
  product.c = y.data();
  product.panels = weight.panels();
  return product;
}

}  // namespace

PackedWeight PackedWeight::pack(const Product& product) {
  const Precision precision = product.round_to_bf16 ? Precision::bf16 : Precision::f32;
  const PanelLayout layout = is_native(precision) ? native_bf16_layout() : portable_layout();
  const int64_t panels = (product.n + layout.columns - 1) / layout.columns;
  const int64_t depth = (product.k + layout.depth_unit - 1) / layout.depth_unit * layout.depth_unit;
  PackedWeight packed;
  packed.rows_ = product.n;
  packed.columns_ = product.k;
  packed.precision_ = precision;
  packed.storage_.resize(
      static_cast<size_t>(panels * layout.columns * depth * (precision == Precision::bf16 ? 2 : 4)));
  if (is_native(precision))
    native_bf16_pack(packed.storage_.data(), product);
  else
    portable_pack(packed.storage_.data(), product);
  return packed;
}

PackedWeight PackedWeight::pack(const WeightView& weight, Precision precision) {
  return pack(weight_product(weight, precision));
}

PackedWeight PackedWeight::pack_transposed(const WeightView& weight, Precision precision) {
  return pack(transposed_product(weight, precision));
}

void matmul(std::span<float> y, std::span<const float> x, const WeightView& weight, Precision precision) {
  Product product = weight_product(weight, precision);
  product.m = static_cast<int64_t>(x.size()) / weight.columns;
  assert(static_cast<int64_t>(x.size()) == product.m * product.k &&
         static_cast<int64_t>(y.size()) == product.m * product.n);
  product.a = x.data();
  product.a_row_stride = product.k;
  product.c = y.data();
  run(product, precision);
}

void matmul(std::span<float> y, std::span<const float> x, const PackedWeight& weight, Update update) {
  Product product = packed_product(y, x, weight);
  product.add = update == Update::add;
  run(product, weight.precision());
}

void matmul(std::span<const PackedOutput> outputs, std::span<const float> x) {
  std::vector<Product> products;
  for (const PackedOutput& output : outputs) {
    products.push_back(packed_product(output.y, x, *output.weight));
    assert(output.weight->precision() == outputs[0].weight->precision() &&
           products.back().k == products[0].k);
  }
  const int64_t count = static_cast<int64_t>(products.size());
  if (is_native(outputs[0].weight->precision()))
    native_bf16_products(products.data(), count);
  else
    portable_products(products.data(), count);
}

void matmul_grad_x(std::span<float> grad_x, std::span<const float> grad_y, const WeightView& weight,
                   Precision precision, Update update) {
  Product product = transposed_product(weight, precision);
  product.m = static_cast<int64_t>(grad_y.size()) / weight.rows;
  assert(static_cast<int64_t>(grad_y.size()) == product.m * product.k);
  assert(static_cast<int64_t>(grad_x.size()) == product.m * product.n);
  product.add = update == Update::add;
  product.a = grad_y.data();
  product.a_row_stride = product.k;
  product.c = grad_x.data();
  run(product, precision);
}

void matmul_grad_weight(std::span<float> grad_weight, std::span<const float> grad_y, std::span<const float> x,
                        int64_t rows, int64_t columns, Precision precision) {
  Product product;
  product.m = rows;
  product.n = columns;
  product.k = static_cast<int64_t>(x.size()) / columns;
  assert(static_cast<int64_t>(grad_y.size()) == product.k * rows &&
         static_cast<int64_t>(grad_weight.size()) == rows * columns);
  product.add = true;
  product.round_to_bf16 = precision == Precision::bf16;
  product.a = grad_y.data();  // A = grad_yᵀ
  product.a_row_stride = 1;
  product.a_column_stride = rows;
  product.b = x.data();
  product.b_row_stride = columns;
  product.b_column_stride = 1;
  product.c = grad_weight.data();
  run(product, precision);
}

}  // namespace ropd::kernels
