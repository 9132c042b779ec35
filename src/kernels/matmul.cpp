#include "kernels/matmul.h"

#include <cassert>
#include <utility>
#include <vector>

#include "kernels/product.h"

namespace ropd::kernels {
namespace {

// The kernels of a precision, the fastest ones with its bits that this machine has.
struct Kernels {
  PanelLayout (*layout)();
  void (*product)(const Product& product);
  void (*products)(const Product* products, int64_t count);
  void (*pack)(std::byte* panels, const Product& product);
};

const Kernels& kernels_of(Precision precision) {
  static constexpr Kernels kPortable{portable_layout, portable_product, portable_products, portable_pack},
      kNative{native_bf16_layout, native_bf16_product, native_bf16_products, native_bf16_pack},
      kTiles{tiles_layout, tiles_product, tiles_products, tiles_pack},
      kAmx{tiles_layout, amx_product, amx_products, tiles_pack};
  if (precision == Precision::bf16_tiles) return has_amx() ? kAmx : kTiles;
  return precision == Precision::bf16 && prefers_native_bf16() ? kNative : kPortable;
}

Product weight_product(const WeightView& weight, Precision precision) {
  Product product;
  product.n = weight.rows;
  product.k = weight.columns;
  product.round_to_bf16 = is_bf16(precision);
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
  product.round_to_bf16 = is_bf16(weight.precision());
  product.a = x.data();
  product.a_row_stride = product.k;
  product.c = y.data();
  product.panels = weight.panels();
  return product;
}

}  // namespace

PackedWeight PackedWeight::pack(const Product& product, Precision precision) {
  const PanelLayout layout = kernels_of(precision).layout();
  const int64_t panels = (product.n + layout.columns - 1) / layout.columns;
  const int64_t depth = (product.k + layout.depth_unit - 1) / layout.depth_unit * layout.depth_unit;
  PackedWeight packed;
  packed.rows_ = product.n;
  packed.columns_ = product.k;
  packed.precision_ = precision;
  packed.storage_.resize(static_cast<size_t>(panels * layout.columns * depth / (is_bf16(precision) ? 2 : 1)));
  kernels_of(precision).pack(std::as_writable_bytes(packed.storage_.span()).data(), product);
  return packed;
}

PackedWeight PackedWeight::pack(const WeightView& weight, Precision precision) {
  return pack(weight_product(weight, precision), precision);
}

PackedWeight PackedWeight::pack_transposed(const WeightView& weight, Precision precision) {
  return pack(transposed_product(weight, precision), precision);
}

void matmul(std::span<float> y, std::span<const float> x, const WeightView& weight, Precision precision) {
  Product product = weight_product(weight, precision);
  product.m = static_cast<int64_t>(x.size()) / weight.columns;
  assert(static_cast<int64_t>(x.size()) == product.m * product.k &&
         static_cast<int64_t>(y.size()) == product.m * product.n);
  product.a = x.data();
  product.a_row_stride = product.k;
  product.c = y.data();
  kernels_of(precision).product(product);
}

void matmul(std::span<float> y, std::span<const float> x, const PackedWeight& weight, Update update) {
  Product product = packed_product(y, x, weight);
  product.add = update == Update::add;
  kernels_of(weight.precision()).product(product);
}

void matmul(std::span<const PackedOutput> outputs, std::span<const float> x) {
  std::vector<Product> products;
  for (const PackedOutput& output : outputs) {
    products.push_back(packed_product(output.y, x, *output.weight));
    assert(output.weight->precision() == outputs[0].weight->precision() &&
           products.back().k == products[0].k);
  }
  kernels_of(outputs[0].weight->precision()).products(products.data(), static_cast<int64_t>(products.size()));
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
  kernels_of(precision).product(product);
}

void matmul_grad_weight(std::span<float> grad_weight, std::span<const float> grad_y, std::span<const float> x,
                        int64_t rows, int64_t columns, Precision precision,
                        std::span<const int64_t> sequence_begins) {
  Product product;
  product.m = rows;
  product.n = columns;
  product.k = static_cast<int64_t>(x.size()) / columns;
  assert(static_cast<int64_t>(grad_y.size()) == product.k * rows &&
         static_cast<int64_t>(grad_weight.size()) == rows * columns);
  product.add = true;
  product.round_to_bf16 = is_bf16(precision);
  product.a = grad_y.data();  // A = grad_yᵀ
  product.a_row_stride = 1;
  product.a_column_stride = rows;
  product.b = x.data();
  product.b_row_stride = columns;
  product.b_column_stride = 1;
  product.c = grad_weight.data();
  if (precision != Precision::bf16_tiles || sequence_begins.empty())
    return kernels_of(precision).product(product);
  assert(sequence_begins.front() == 0 && sequence_begins.back() == product.k);
  for (size_t s = 0; s + 1 < sequence_begins.size(); ++s) {
    const int64_t begin = sequence_begins[s];
    product.k = sequence_begins[s + 1] - begin;
    product.a = grad_y.data() + begin * rows;
    product.b = x.data() + begin * columns;
    kernels_of(precision).product(product);
  }
}

}  // namespace ropd::kernels
