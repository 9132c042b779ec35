// Any bytes as tokenizer.json: refused with Error, or a tokenizer whose encode and decode agree.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  try {
    const auto tokenizer = ropd::text::Tokenizer::parse(json, "fuzz");
    const auto ids = tokenizer.encode("ab  <s> c\n12\xC3\xA9<t>");
    for (const auto id : ids)
      if (id < 0 || static_cast<size_t>(id) >= tokenizer.vocab_size()) std::abort();
    (void)tokenizer.decode(ids);
    if (tokenizer.encode_first("ab  <s> c\n12\xC3\xA9<t>", ids.size()) != ids) std::abort();
  } catch (const ropd::Error&) {
  }
  return 0;
}
