// LaTeX as plain text, the way the reference's converter writes it: \frac{a}{b} -> a/b without parentheses,
// \sqrt[n]{x} -> √(x), symbols as Unicode, groups without braces, unknown macros dropped while their
// arguments stay. A lossy view for comparing strings (stage 2), no parser.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ropd::grading {

// Nothing when groups are nested deeper than 64 levels (bounded recursion).
[[nodiscard]] std::optional<std::string> latex_to_text(std::string_view latex);

}  // namespace ropd::grading
