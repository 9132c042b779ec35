#include "stats/measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "stats/answer_metrics.h"

namespace ropd::stats {
namespace {

using Kind = Measure::Kind;

struct Entry {
  Kind kind;
  const char* name;
  const char* heading;
};
constexpr Entry kEntries[] = {{Kind::accuracy, "accuracy", "accuracy"},
                              {Kind::pass, "pass@n", "pass@n"},
                              {Kind::majority, "majority", "majority vote"},
                              {Kind::extraction, "extraction", "answer extracted"},
                              {Kind::length, "length", "length"},
                              {Kind::at_cap, "at_cap", "at the cap"},
                              {Kind::extracted, "extracted", "answer, ended"},
                              {Kind::extracted_at_cap, "extracted_at_cap", "answer, at the cap"},
                              {Kind::unextracted, "unextracted", "no answer, ended"},
                              {Kind::unextracted_at_cap, "unextracted_at_cap", "no answer, at the cap"}};

const Entry& entry_of(Kind kind) {
  for (const Entry& entry : kEntries)
    if (entry.kind == kind) return entry;
  __builtin_unreachable();
}

}  // namespace

std::string Measure::name() const {
  return kind == Kind::pass && k > 0 ? "pass@" + std::to_string(k) : entry_of(kind).name;
}

std::string Measure::heading() const {
  const std::string words = kind == Kind::pass ? name() : entry_of(kind).heading;
  return words + (is_share() ? ", %" : ", tokens");
}

Measure parse_measure(const std::string& name) {
  for (const Entry& entry : kEntries)
    if (name == entry.name) return {entry.kind};
  if (name.starts_with("pass@") && name.size() > 5 && name.size() < 11 &&
      name.find_first_not_of("0123456789", 5) == std::string::npos)
    if (const int k = std::stoi(name.substr(5)); k > 0) return {Kind::pass, uint32_t(k)};
  std::string known;
  for (const Entry& entry : kEntries) known += std::string(known.empty() ? "" : ", ") + entry.name;
  fail("measure '", name, "', expected one of ", known, " or pass@K");
}

std::vector<Measure> parse_measures(const std::string& names) {
  if (names == "all") return all_measures();
  std::vector<Measure> measures;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    measures.push_back(parse_measure(names.substr(begin, end - begin)));
    begin = end + 1;
  }
  return measures;
}

std::vector<Measure> all_measures() {
  std::vector<Measure> measures;
  for (const Entry& entry : kEntries) measures.push_back({entry.kind});
  return measures;
}

double value_of(const Measure& measure, const QuestionValues& question) {
  switch (measure.kind) {
    case Kind::accuracy:
      return question.accuracy;
    case Kind::pass: {
      if (measure.k == 0) return question.accuracy > 0 ? 1 : 0;
      if (measure.k > question.responses) return std::numeric_limits<double>::quiet_NaN();
      const auto correct = uint32_t(std::lround(question.accuracy * question.responses));
      return unbiased_pass_at_k(question.responses, correct, measure.k);
    }
    case Kind::majority:
      return question.majority;
    case Kind::extraction:
      return question.extraction;
    case Kind::length:
      return question.length;
    case Kind::at_cap:
      return question.at_cap;
    case Kind::extracted:
      return question.extraction - question.extracted_at_cap;
    case Kind::extracted_at_cap:
      return question.extracted_at_cap;
    case Kind::unextracted:
      return 1 - question.extraction - question.at_cap + question.extracted_at_cap;
    case Kind::unextracted_at_cap:
      return question.at_cap - question.extracted_at_cap;
  }
  __builtin_unreachable();
}

}  // namespace ropd::stats
