#include "tensor/dtype.h"

namespace ropd {

// Half precision: 1 sign, 5 exponent (bias 15), 10 mantissa bits; written out so that results do not depend
// on F16C.
float f16_to_float(uint16_t value) {
  const uint32_t sign = uint32_t{value & 0x8000u} << 16;
  const uint32_t exponent = (value >> 10) & 31u, mantissa = value & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));  // infinity, NaN
  if (exponent == 0) {                                                                     // zero, subnormal
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));  // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);     // from 65520 on: infinity
  if (magnitude >= 0x38800000u) {                                                 // normal: from 2^-14 on
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
  }
  // Subnormal: adding 0.5 puts the last kept bit (2^-24) at the end of the float's mantissa, which rounds to
  // even.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
}

}  // namespace ropd
