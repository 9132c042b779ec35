#include "diagnostics/fit_and_shift.h"

namespace ropd::diagnostics {

std::vector<FitAndShift> fit_and_shift(const std::vector<std::vector<double>>& kl,
                                       std::span<const std::optional<size_t>> own_source) {
  std::vector<FitAndShift> pairs;
  for (size_t a = 0; a < kl.size(); ++a)
    for (size_t b = a + 1; b < kl.size(); ++b) {
      if (!own_source[a] || !own_source[b]) continue;
      const double aa = kl[a][*own_source[a]], ba = kl[b][*own_source[a]], bb = kl[b][*own_source[b]];
      pairs.push_back({.from = a, .to = b, .change = aa - bb, .fit = aa - ba, .shift = ba - bb});
    }
  return pairs;
}

}  // namespace ropd::diagnostics
