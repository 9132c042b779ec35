// Any text as model.safetensors.index.json: refused with Error, or a map whose file names are plain names.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "io/model_directory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& [tensor, shard] : ropd::io::parse_shard_index(text, "fuzz")) {
      if (ropd::Path(shard).filename() != shard || shard == "..") std::abort();
    }
  } catch (const ropd::Error&) {
  }
  return 0;
}
