#include "lab/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "stats/answer_metrics.h"

namespace ropd::lab {
namespace {

constexpr double kNormal95 = 1.96;

std::string fixed_text(double value, int decimals) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string signed_text(double value, int decimals) {
  return (value < 0 ? "" : "+") + fixed_text(value, decimals);
}

const MethodResult* find(const LabResults& results, Role role) {
  for (const MethodResult& method : results.methods)
    if (method.role == role && !method.runs.empty()) return &method;
  return nullptr;
}

double error_at(const RunResult& run, size_t budget_index) {
  return budget_index < run.standard_error.size() ? run.standard_error[budget_index] : 0.0;
}

template <class Value>
double mean_over_runs(const MethodResult& method, Value value) {
  double sum = 0;
  for (const RunResult& run : method.runs) sum += value(run);
  return sum / static_cast<double>(method.runs.size());
}

Verdict verdict_of(const Difference& difference) {
  const double margin = kNormal95 * difference.standard_error;
  return difference.mean > margin    ? Verdict::shown
         : difference.mean < -margin ? Verdict::opposite
                                     : Verdict::not_shown;
}

// "72.6 against 66.1, +6.5 +- 1.4 points"
std::string difference_text(const Difference& d) {
  return fixed_text(100 * d.left, 1) + " against " + fixed_text(100 * d.right, 1) + ", " +
         signed_text(100 * d.mean, 1) + " ± " + fixed_text(100 * kNormal95 * d.standard_error, 1) + " points";
}

std::string seeds_text(size_t count) { return count > 1 ? " (" + std::to_string(count) + " seeds)" : ""; }

// A claim that one method is better than another at one budget.
Finding better(const LabResults& results, Role left, Role right, size_t budget_index, std::string claim) {
  const MethodResult* one = find(results, left);
  const MethodResult* other = find(results, right);
  if (!one || !other) return {Verdict::not_run, std::move(claim), ""};
  const Difference d = difference(*one, *other, budget_index);
  return {verdict_of(d), std::move(claim), difference_text(d) + seeds_text(d.num_pairs)};
}

Finding crossover(const LabResults& results) {
  const size_t last = results.budgets.size() - 1;
  Finding finding{Verdict::not_run,
                  "Current-policy rollouts win at the short budget (" + std::to_string(results.budgets[0]) +
                      " tokens), initial-policy rollouts at the long one (" +
                      std::to_string(results.budgets[last]) + ")",
                  ""};
  const MethodResult* initial = find(results, Role::initial_only);
  const MethodResult* current = find(results, Role::current);
  if (!initial || !current || last == 0) return finding;
  const Difference at_short = difference(*current, *initial, 0),
                   at_long = difference(*initial, *current, last);
  const Verdict first = verdict_of(at_short), second = verdict_of(at_long);
  finding.verdict = first == Verdict::shown && second == Verdict::shown         ? Verdict::shown
                    : first == Verdict::opposite && second == Verdict::opposite ? Verdict::opposite
                                                                                : Verdict::not_shown;
  finding.numbers = "current minus initial-only at " + std::to_string(results.budgets[0]) + ": " +
                    difference_text(at_short) + "; initial-only minus current at " +
                    std::to_string(results.budgets[last]) + ": " + difference_text(at_long) +
                    seeds_text(at_long.num_pairs);
  return finding;
}

Finding longer_responses(const LabResults& results) {
  Finding finding{Verdict::not_run,
                  "Training on initial-policy rollouts gives longer responses than current-policy rollouts",
                  ""};
  const MethodResult* initial = find(results, Role::initial_only);
  const MethodResult* current = find(results, Role::current);
  if (!initial || !current) return finding;
  const auto length = [](const RunResult& run) { return run.length; };
  const double left = mean_over_runs(*initial, length), right = mean_over_runs(*current, length);
  constexpr double kMargin = 0.05;  // of the length: less is no difference worth a sentence
  finding.verdict = left > right * (1 + kMargin)   ? Verdict::shown
                    : left < right * (1 - kMargin) ? Verdict::opposite
                                                   : Verdict::not_shown;
  finding.numbers = fixed_text(left, 0) + " against " + fixed_text(right, 0) + " tokens";
  if (const MethodResult* student = find(results, Role::initial_student))
    finding.numbers += "; the initial student writes " + fixed_text(mean_over_runs(*student, length), 0);
  return finding;
}

// The paper after 40 steps: 99.15 % of the prefixes less likely, KL 0.774 -> 0.448 there (58 % left).
Finding prefixes(const LabResults& results) {
  Finding finding{Verdict::not_run,
                  "Under current-policy training the initial student's prefixes become less likely while "
                  "disagreement with the teacher "
                  "remains on them",
                  ""};
  const MethodResult* student = find(results, Role::initial_student);
  const MethodResult* current = find(results, Role::current);
  if (!student || !current || !student->runs[0].prefix_kl) return finding;
  double kl = 0, less_likely = 0;
  for (const RunResult& run : current->runs) {
    if (!run.prefix_kl || !run.prefixes_less_likely) return finding;
    kl += *run.prefix_kl / static_cast<double>(current->runs.size());
    less_likely += *run.prefixes_less_likely / static_cast<double>(current->runs.size());
  }
  const double before = *student->runs[0].prefix_kl, left = before > 0 ? kl / before : 0;
  finding.verdict = less_likely < 0.5                    ? Verdict::opposite
                    : less_likely >= 0.9 && left >= 0.25 ? Verdict::shown
                                                         : Verdict::not_shown;
  finding.numbers = fixed_text(100 * less_likely, 1) + " % of the prefixes are less likely; KL there " +
                    fixed_text(before, 3) + " -> " + fixed_text(kl, 3) + " (" + fixed_text(100 * left, 0) +
                    " % is left)";
  return finding;
}

std::string tau_text(const MethodResult& method) {
  std::string text;
  for (const RunResult& run : method.runs)
    text += (text.empty() ? "" : ",") + (run.tau ? std::to_string(*run.tau) : std::string("none"));
  return text;
}

Finding ropd_against_current(const LabResults& results) {
  const size_t last = results.budgets.size() - 1;
  Finding finding =
      better(results, Role::ropd, Role::current, last,
             "R-OPD beats current-only at " + std::to_string(results.budgets[last]) + " tokens");
  if (const MethodResult* method = find(results, Role::ropd)) {
    finding.numbers += "; tau " + tau_text(*method);
    const bool never = std::none_of(method->runs.begin(), method->runs.end(),
                                    [](const RunResult& run) { return run.tau.has_value(); });
    if (never) finding.numbers += " (without a trigger R-OPD is current-only)";
  }
  return finding;
}

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::shown:
      return "shown";
    case Verdict::not_shown:
      return "not shown";
    case Verdict::opposite:
      return "opposite";
    case Verdict::not_run:
      break;
  }
  return "not run";
}

// Width in characters: the table holds ± and names with Greek letters.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width, bool to_right) {
  const std::string space(width > width_of(text) ? width - width_of(text) : 0, ' ');
  return to_right ? space + text : text + space;
}

std::string spread_text(const MethodResult& method, int decimals, double scale,
                        double (*value)(const RunResult&, size_t), size_t index) {
  std::vector<double> values;
  for (const RunResult& run : method.runs) values.push_back(scale * value(run, index));
  const stats::MeanDeviation spread = stats::mean_and_deviation(values);
  std::string text = fixed_text(spread.mean, decimals);
  if (spread.count > 1) text += " ± " + fixed_text(spread.deviation, decimals);
  return text;
}

}  // namespace

Difference difference(const MethodResult& left, const MethodResult& right, size_t budget_index) {
  std::vector<double> lefts, rights, differences;
  double variance = 0;
  for (const RunResult& one : left.runs)
    for (const RunResult& other : right.runs) {
      if (one.seed != other.seed) continue;
      lefts.push_back(one.accuracy[budget_index]);
      rights.push_back(other.accuracy[budget_index]);
      differences.push_back(lefts.back() - rights.back());
      variance += std::pow(error_at(one, budget_index), 2) + std::pow(error_at(other, budget_index), 2);
    }
  if (differences.empty()) {  // no seed in common: compare the means
    for (const RunResult& one : left.runs) {
      lefts.push_back(one.accuracy[budget_index]);
      variance += std::pow(error_at(one, budget_index) / static_cast<double>(left.runs.size()), 2);
    }
    for (const RunResult& other : right.runs) {
      rights.push_back(other.accuracy[budget_index]);
      variance += std::pow(error_at(other, budget_index) / static_cast<double>(right.runs.size()), 2);
    }
    const double one = stats::mean_and_deviation(lefts).mean, other = stats::mean_and_deviation(rights).mean;
    return {.left = one,
            .right = other,
            .mean = one - other,
            .standard_error = std::sqrt(variance),
            .num_pairs = 0};
  }
  const auto count = static_cast<double>(differences.size());
  const stats::MeanDeviation spread = stats::mean_and_deviation(differences);
  return {.left = stats::mean_and_deviation(lefts).mean,
          .right = stats::mean_and_deviation(rights).mean,
          .mean = spread.mean,
          .standard_error = std::max(std::sqrt(variance) / count, spread.deviation / std::sqrt(count)),
          .num_pairs = differences.size()};
}

std::vector<Finding> findings(const LabResults& results) {
  if (results.budgets.empty()) return {};
  const size_t last = results.budgets.size() - 1;
  const std::string at_long = " at " + std::to_string(results.budgets[last]) + " tokens";
  return {
      {Verdict::not_run, "Query count and resampling interact", "ropd lab --paper --study grid"},
      crossover(results),
      longer_responses(results),
      prefixes(results),
      better(results, Role::fixed, Role::current, last,
             "Replay of the initial bank after current-policy training beats continued sampling" + at_long),
      better(results, Role::fixed, Role::recent, last,
             "The initial bank beats a frozen recent bank" + at_long),
      better(results, Role::fixed, Role::initial_first, last,
             "Current-then-initial beats initial-then-current" + at_long),
      ropd_against_current(results)};
}

std::string console_table(const LabResults& results) {
  std::vector<std::vector<std::string>> rows(1, {"accuracy, %"});
  for (const int64_t budget : results.budgets) rows[0].push_back(std::to_string(budget));
  rows[0].insert(rows[0].end(), {"length", "at cap, %", "tau"});
  for (const MethodResult& method : results.methods) {
    if (method.runs.empty()) continue;
    std::vector<std::string>& row = rows.emplace_back(1, method.name);
    for (size_t i = 0; i < results.budgets.size(); ++i)
      row.push_back(spread_text(
          method, 1, 100, [](const RunResult& run, size_t at) { return run.accuracy[at]; }, i));
    row.push_back(spread_text(
        method, 0, 1, [](const RunResult& run, size_t) { return run.length; }, 0));
    row.push_back(spread_text(
        method, 1, 100, [](const RunResult& run, size_t) { return run.at_cap; }, 0));
    row.push_back(method.role == Role::ropd ? tau_text(method) : "-");
  }
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += (i ? "  " : "") + padded(row[i], widths[i], i > 0);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string console_findings(const LabResults& results) {
  std::string text;
  for (const Finding& finding : findings(results))
    text += padded(verdict_name(finding.verdict), 11, false) + finding.claim +
            (finding.numbers.empty() ? "" : ": " + finding.numbers) + ".\n";
  return text;
}

std::string console_note(const LabResults& results) {
  const MethodResult* initial = find(results, Role::initial_student);
  if (!initial || results.budgets.empty()) return "";
  const size_t last = results.budgets.size() - 1;
  const auto accuracy = [&](const RunResult& run) { return run.accuracy[last]; };
  const auto length = [](const RunResult& run) { return run.length; };
  const MethodResult* best = nullptr;
  for (const MethodResult& method : results.methods) {
    if (method.runs.empty() || method.role == Role::initial_student || method.role == Role::teacher) continue;
    if (!best || mean_over_runs(method, accuracy) > mean_over_runs(*best, accuracy)) best = &method;
  }
  const double before = mean_over_runs(*initial, accuracy);
  if (!best || mean_over_runs(*best, accuracy) > before) return "";
  return "Note: after " + std::to_string(results.num_updates) +
         " updates no method is above the initial student yet (best: " + best->name + ", " +
         fixed_text(100 * mean_over_runs(*best, accuracy), 1) + " against " + fixed_text(100 * before, 1) +
         " at " + std::to_string(results.budgets[last]) + " tokens). Responses have gone from " +
         fixed_text(mean_over_runs(*initial, length), 0) + " to " +
         fixed_text(mean_over_runs(*best, length), 0) +
         " tokens: the student takes over the teacher's long style first and gets its steps right later. The "
         "verdicts above are about this moment; `ropd lab` trains 60 updates.\n";
}

Json results_json(const LabResults& results) {
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json methods = Json::array(), found = Json::array();
  for (const MethodResult& method : results.methods) {
    Json runs = Json::array();
    for (const RunResult& run : method.runs)
      runs.push_back({{"seed", run.seed},
                      {"accuracy", run.accuracy},
                      {"standard_error", run.standard_error},
                      {"length", run.length},
                      {"at_cap", run.at_cap},
                      {"tau", or_null(run.tau)},
                      {"prefix_kl", or_null(run.prefix_kl)},
                      {"prefixes_less_likely", or_null(run.prefixes_less_likely)}});
    methods.push_back({{"name", method.name}, {"runs", runs}});
  }
  for (const Finding& finding : findings(results))
    found.push_back(
        {{"verdict", verdict_name(finding.verdict)}, {"claim", finding.claim}, {"numbers", finding.numbers}});
  return {{"budgets", results.budgets},
          {"updates", results.num_updates},
          {"methods", methods},
          {"findings", found},
          {"note", console_note(results)}};
}

}  // namespace ropd::lab
