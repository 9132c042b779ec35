// A parquet file of any content gives rows or an Error, within the decode limit.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "io/parquet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ropd;
  try {
    const io::ParquetFile file(std::as_bytes(std::span(data, size)), "fuzz.parquet",
                               {.max_decoded_bytes = 1 << 18});
    file.for_each_row([](Json&&, uint64_t) {});
  } catch (const Error&) {
  }
  return 0;
}
