// Any bytes as a safetensors file: refused with Error, or tensors that lie inside the file and match their
// shapes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    uint64_t total = 0;
    unsigned sum = 0;
    for (const auto& tensor : ropd::io::parse_safetensors(file, "fuzz").tensors) {
      for (const std::byte byte : tensor.bytes)
        sum += std::to_integer<unsigned>(byte);  // every byte is readable
      const ropd::io::TensorInfo info{tensor.name, tensor.dtype, tensor.shape};
      if (info.num_bytes() != tensor.bytes.size()) std::abort();
      total += tensor.bytes.size();
    }
    if (total > size || sum > total * 255) std::abort();
  } catch (const ropd::Error&) {
  }
  return 0;
}
