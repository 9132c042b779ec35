// The strict comparison: parsed answers only, with units, names, case, bases and the number of answers kept.
// It is what Mode::reference is not: free of the false positives that parity needs (docs/grader.md lists
// them).
#pragma once
#include <string>
#include <string_view>

namespace ropd::grading {

// An answer without its unit: 5 \text{ cm}^2 -> "5" and "cm^2". The unit is empty when there is none.
struct Quantity {
  std::string value;
  std::string unit;
};
[[nodiscard]] Quantity split_unit(std::string_view answer);

[[nodiscard]] bool equivalent_strictly(std::string_view given, std::string_view expected);

}  // namespace ropd::grading
