// Whether a measured difference says what the paper says, in words.
#pragma once
#include <optional>
#include <string>

#include "stats/bootstrap.h"

namespace ropd::study {

enum class Verdict {
  same_and_significant,      // the paper's sign; the interval excludes zero
  same_sign,                 // the paper's sign; the interval holds zero
  no_difference,             // exactly zero here, as for two names of one state
  opposite,                  // the other sign; the interval holds zero
  opposite_and_significant,  // the other sign; the interval excludes zero
  not_measured
};
Verdict judge(const std::optional<stats::Interval>& measured, double paper);
std::string verdict_text(Verdict verdict);

}  // namespace ropd::study
