#include "study/verdict.h"

namespace ropd::study {

Verdict judge(const std::optional<stats::Interval>& measured, double paper) {
  if (!measured) return Verdict::not_measured;
  if (measured->estimate == 0) return Verdict::no_difference;
  const bool is_significant = measured->low > 0 || measured->high < 0;
  if ((measured->estimate > 0) == (paper > 0))
    return is_significant ? Verdict::same_and_significant : Verdict::same_sign;
  return is_significant ? Verdict::opposite_and_significant : Verdict::opposite;
}

std::string verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::same_and_significant:
      return "same sign and significant";
    case Verdict::same_sign:
      return "same sign, not significant";
    case Verdict::no_difference:
      return "no difference";
    case Verdict::opposite:
      return "opposite, not significant";
    case Verdict::opposite_and_significant:
      return "opposite and significant";
    case Verdict::not_measured:
      break;
  }
  return "not measured";
}

}  // namespace ropd::study
