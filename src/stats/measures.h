// What can be measured of the responses to one question, by name. Each is a number per question, so that
// means, differences and intervals are the same code for all of them.
//   accuracy            correct / responses
//   pass@n, pass@K      at least one correct; of K drawn out of n: 1 - C(n - c, K) / C(n, K)
//   majority            the most frequent extracted answer is correct
//   extraction          share of responses with an answer
//   length              mean retained tokens
//   at_cap              share that reached the limit
//   extracted, extracted_at_cap, unextracted, unextracted_at_cap     response categories; they add up to one
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ropd::stats {

// The responses to one question at one budget.
struct QuestionValues {
  double accuracy = 0;
  double majority = 0;
  double extraction = 0;
  double length = 0;
  double at_cap = 0;
  double extracted_at_cap = 0;  // NaN in files that do not record it
  uint32_t responses = 0;
};

struct Measure {
  enum class Kind {
    accuracy,
    pass,
    majority,
    extraction,
    length,
    at_cap,
    extracted,
    extracted_at_cap,
    unextracted,
    unextracted_at_cap
  };
  Kind kind = Kind::accuracy;
  uint32_t k = 0;  // of pass@k; 0 = all responses

  std::string name() const;     // as parse_measure reads it
  std::string heading() const;  // with its unit, for captions: "accuracy, %"
  // Shares are shown in percent, lengths in tokens.
  bool is_share() const { return kind != Kind::length; }
  double scale() const { return is_share() ? 100 : 1; }
  bool operator==(const Measure&) const = default;
};

Measure parse_measure(const std::string& name);
// "accuracy,pass@32" or "all".
std::vector<Measure> parse_measures(const std::string& names);
std::vector<Measure> all_measures();

// NaN where the question does not have it: pass@k with fewer than k responses, a category that was not
// recorded.
double value_of(const Measure& measure, const QuestionValues& question);

}  // namespace ropd::stats
