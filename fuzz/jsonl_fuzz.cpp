// A JSONL file of any content gives queries or an Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "io/dataset.h"
#include "io/jsonl.h"
#include "train/query_operations.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ropd;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto dataset = io::parse_jsonl_dataset(text, "fuzz.jsonl", io::DuplicateIds::keep);
    const auto kept = train::deduplicate_by_prompt(dataset.queries);
    for (const size_t index : kept.kept) {
      train::has_han(dataset.queries[index]);
      train::normalised_words(dataset.queries[index].messages.back().content);
    }
  } catch (const Error&) {
  }
  return 0;
}
