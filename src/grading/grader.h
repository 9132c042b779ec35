// Is this response right? The answer is the text of the last \boxed{...}; it is compared with the given
// answer in three stages, any of which may accept (docs/grader.md):
//   1. equal mathd normal forms
//   2. equal PRM800K normal forms, or equal values of them
//   3. equal parsed LaTeX
// Mode::reference agrees with the paper's grader (ttrl_math), its known false positives included;
// Mode::strict parses only and keeps units, variable names, bases and the number of answers. All functions
// are pure, thread-safe and bounded: step budgets replace time limits, so the same input gives the same
// verdict everywhere.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ropd::grading {

enum class Mode { reference, strict };

struct Verdict {
  bool correct = false;
  bool answer_found = false;  // the response holds a complete last \boxed{...}
  std::string extracted;      // its inside; empty when none was found
};

// Grades a whole response. An `answer` that itself holds \boxed is unwrapped first; when that fails the
// verdict is wrong.
[[nodiscard]] Verdict grade(std::string_view response, std::string_view answer, Mode mode = Mode::reference);

// Whether an extracted answer equals the expected one. Not symmetric in Mode::reference: `expected` sets the
// form, as in the paper's grader. Majority vote compares two extracted answers with it.
[[nodiscard]] bool equivalent(std::string_view given, std::string_view expected, Mode mode = Mode::reference);

// The inside of the last \boxed{...}; nothing when there is none, when it never closes or is not written
// \boxed{.
[[nodiscard]] std::optional<std::string> extract_boxed(std::string_view response);

}  // namespace ropd::grading
