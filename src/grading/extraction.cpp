// The answer in a response: the last \boxed{...}, braces counted without regard to backslashes
// (docs/grader.md, 1).
#include "grading/grader.h"

namespace ropd::grading {

std::optional<std::string> extract_boxed(std::string_view response) {
  constexpr std::string_view kBegin = "\\boxed{";
  const size_t begin = response.rfind("\\boxed");
  if (begin == std::string_view::npos) return std::nullopt;
  // A box that does not start exactly with \boxed{ is no answer, even if an earlier one is complete.
  if (!response.substr(begin).starts_with(kBegin)) return std::nullopt;
  size_t depth = 0;
  for (size_t i = begin; i < response.size(); ++i) {
    if (response[i] == '{') ++depth;
    if (response[i] == '}' && --depth == 0)
      return std::string(response.substr(begin + kBegin.size(), i - begin - kBegin.size()));
  }
  return std::nullopt;
}

}  // namespace ropd::grading
