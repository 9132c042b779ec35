// A matrix product as the block driver sees it: C [M, N] (+)= A [M, K] · B [K, N] with strides, so that the
// three products of training are one. Internal to kernels/.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace ropd::kernels {

struct Product {
  float* c = nullptr;  // [M, N] row-major
  int64_t m = 0, n = 0, k = 0;
  bool add = false;            // continue the chains from C instead of from zero
  bool round_to_bf16 = false;  // both factors, before multiplying
  const float* a = nullptr;    // a[row * a_row_stride + column * a_column_stride]
  int64_t a_row_stride = 0, a_column_stride = 1;
  const void* b = nullptr;  // as stored, likewise; or:
  DType b_dtype = DType::f32;
  int64_t b_row_stride = 0, b_column_stride = 1;
  const std::byte* panels = nullptr;  // B packed by PackedWeight (in bf16 when round_to_bf16)
};

// The instruction sets differ in how B is best laid out; a PackedWeight is made for the one it runs on.
struct PanelLayout {
  int64_t columns = 0;     // of B in one panel
  int64_t depth_unit = 1;  // rows of B come in groups of this many (2 for native bf16 dot products)
};

// The portable kernels (f32 arithmetic), compiled for several instruction sets and chosen at run time.
PanelLayout portable_layout();
void portable_product(const Product& product);
void portable_products(const Product* products, int64_t count);  // of the same A, with stored panels
void portable_pack(std::byte* panels,
                   const Product& product);  // every panel of product.b, as round_to_bf16 says

// Native bf16 dot products (AVX-512 BF16): twice the arithmetic of f32, the same chains. They take numbers
// below 2^-126 as zero and flush such sums to zero. `has` is also false where a trial shows another order of
// the two additions than the one that the instruction is documented to have.
bool has_native_bf16();
// Whether they are also the faster ones: on AMD's processors twice as fast as f32 arithmetic on bf16 panels, on
// Intel's (which have AMX beside them) about half as fast. By maker and not by a measurement, so that a run
// never depends on what else the machine did when it started.
bool prefers_native_bf16();
PanelLayout native_bf16_layout();
void native_bf16_product(const Product& product);
void native_bf16_products(const Product* products, int64_t count);
void native_bf16_pack(std::byte* panels, const Product& product);
// Dot products on registers alone, for measuring; returns operations, and something of their result.
double native_bf16_burst(int64_t rounds, float* sink);

// Products as matrix units compute them (Precision::bf16_tiles, matmul.h): on any processor, and on Intel's AMX.
// Both read the same panels and give the same bits, except that AMX takes numbers below 2^-126 as zero. has_amx()
// asks the system for the tile registers, tries the order of additions, and is false where either fails.
PanelLayout tiles_layout();
void tiles_product(const Product& product);
void tiles_products(const Product* products, int64_t count);
void tiles_pack(std::byte* panels, const Product& product);
bool has_amx();
void amx_product(const Product& product);
void amx_products(const Product* products, int64_t count);
double amx_burst(int64_t rounds, float* sink);  // as native_bf16_burst

}  // namespace ropd::kernels
