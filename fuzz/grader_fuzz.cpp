// Any two texts get a verdict, the same one every time, in both modes; a text always equals itself.
// The input is "given NUL expected"; without a NUL it is compared with itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "grading/grader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ropd::grading;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\0');
  const std::string_view given = text.substr(0, end);
  const std::string_view expected = end == std::string_view::npos ? given : text.substr(end + 1);
  for (const Mode mode : {Mode::reference, Mode::strict}) {
    if (equivalent(given, expected, mode) != equivalent(given, expected, mode)) std::abort();
    if (!equivalent(given, given, mode)) std::abort();
  }
  const std::string response = "so \\boxed{" + std::string(given) + "}";
  const Verdict verdict = grade(response, expected);
  if (verdict.answer_found != extract_boxed(response).has_value()) std::abort();
  return 0;
}
