// Why the KL on a student's own states changed from student a to a later student b:
//   E_aa - E_bb = (E_aa - E_ba) + (E_ba - E_bb)
//     change    =      fit      +     shift
// with E_ij the mean KL of student i to the teacher on the states that source j visits. Fit: b agrees better
// where a used to go. Shift: b goes elsewhere.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace ropd::diagnostics {

struct FitAndShift {
  size_t from = 0, to = 0;  // students a and b
  double change = 0, fit = 0, shift = 0;
};

// Every pair of students, the earlier one first, that both have a source of their own.
// kl: [students][sources]; own_source: [students] the source that is this student's own rollouts.
std::vector<FitAndShift> fit_and_shift(const std::vector<std::vector<double>>& kl,
                                       std::span<const std::optional<size_t>> own_source);

}  // namespace ropd::diagnostics
