// Element types of stored tensors and the bf16 conversion every part of the program shares.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ropd {

enum class DType { f32, f16, bf16 };

constexpr size_t dtype_bytes(DType dtype) { return dtype == DType::f32 ? 4 : 2; }
constexpr std::string_view dtype_name(DType dtype) {
  return dtype == DType::f32 ? "F32" : dtype == DType::f16 ? "F16" : "BF16";  // safetensors spelling
}

using Bf16 = uint16_t;  // the upper half of a float

constexpr float bf16_to_float(Bf16 value) { return std::bit_cast<float>(uint32_t{value} << 16); }

// Round to nearest, ties to even; NaN stays NaN.
constexpr Bf16 float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<Bf16>((bits >> 16) | 0x40u);
  return static_cast<Bf16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float f16_to_float(uint16_t value);
uint16_t float_to_f16(float value);  // round to nearest, ties to even

}  // namespace ropd
