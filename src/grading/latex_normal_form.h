// LaTeX tidied before it is parsed (stage 3): sizes of brackets, fonts and dollars go, and/or become commas,
// units at the end vanish, shorthand gets its braces (\frac12, \sqrt3, x^(2)). The rules and their order are
// the reference's (Math-Verify with its default settings).
#pragma once
#include <string>
#include <string_view>

namespace ropd::grading {

enum class Units { drop, keep };

[[nodiscard]] std::string latex_normal_form(std::string_view latex, Units units = Units::drop);

// The part behind the last "=" where there are more than two parts and no list; otherwise the text itself.
[[nodiscard]] std::string last_equation_side(const std::string& latex);

// \sqrt3 -> \sqrt{3}, \frac12 -> \frac{1}{2}, 1/2 -> \frac{1}{2}: the last step of latex_normal_form, also
// used alone.
[[nodiscard]] std::string brace_shorthand(std::string_view latex);

}  // namespace ropd::grading
