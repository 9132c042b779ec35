// Methods against each other: every measure at every common budget, differences and interactions with their
// intervals, and the tables that show them. A method is one evaluation or several runs of it (data orders).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stats/bootstrap.h"
#include "stats/evaluation.h"
#include "stats/measures.h"
#include "stats/table.h"

namespace ropd::stats {

struct Method {
  std::string label;
  std::vector<EvaluationSummary> runs;
  // [runs] what tells one data order from another ("order 2, seed 2"); "" where it is not known.
  std::vector<std::string> orders = {};
};

// What is asked: sum of weights times methods, by their index.
struct Question {
  std::string title;  // "R-OPD - current"
  std::vector<std::pair<size_t, double>> terms;
};
Question difference_of(std::span<const Method> methods, size_t left, size_t right);
// (a - b) - (c - d)
Question interaction_of(std::span<const Method> methods, size_t a, size_t b, size_t c, size_t d);

// How the runs of the methods in a question meet.
enum class Pairing {
  by_order,     // every method has the same orders: run i of one belongs to run i of the other
  by_position,  // equally many runs, orders not known: taken in the order given
  none,         // independent
};

// The answer to one question for one measure, at every budget.
struct EffectCurve {
  std::string title;
  Measure measure;
  std::vector<uint32_t> budgets;
  std::vector<std::string> benchmarks;
  std::vector<SuiteEffect> effects;      // [budgets]
  std::vector<MeanDeviation> over_runs;  // [budgets] of paired runs; count 0 otherwise
  std::vector<size_t> num_runs;          // of each method in the question
  Pairing pairing = Pairing::none;
};

// Fails unless all saw the same questions. Returns the settings that differ, in words.
std::vector<std::string> check_comparable(std::span<const Method> methods);

// Ascending; fails when there is none.
std::vector<uint32_t> common_budgets(std::span<const Method> methods);

// Puts runs of known orders into the order of the first method's, where all have the same; otherwise leaves
// them.
void align_orders(std::vector<Method>& methods);
Pairing pairing_of(std::span<const Method> methods, const Question& question);

std::vector<EffectCurve> answer(std::span<const Method> methods, std::span<const Question> questions,
                                std::span<const Measure> measures, std::span<const uint32_t> budgets,
                                const BootstrapConfig& config);

// ---- tables ----

// A row per method, a column per budget: mean and sample SD over runs, and the number of runs.
Table method_table(std::span<const Method> methods, const Measure& measure,
                   std::span<const uint32_t> budgets);
// A row per curve, a column per budget: estimate and interval. All curves have one measure and the same
// budgets.
Table curve_table(std::span<const EffectCurve> curves, const BootstrapConfig& config);
// A row per curve and benchmark, at one budget of the curves.
Table benchmark_table(std::span<const EffectCurve> curves, uint32_t budget, const BootstrapConfig& config);
// A row per measure, a column per title, at one budget: curves of several measures.
Table measure_table(std::span<const EffectCurve> curves, uint32_t budget, const BootstrapConfig& config);

// "* ..., 12 comparisons: ..." for a table that shows these effects, and the mark of each: "", "*" (its
// interval excludes zero) or "**" (also after Holm's correction over the table).
std::vector<std::string> significance_marks(std::span<const Effect> effects, double coverage);
std::string comparisons_note(size_t num_comparisons, double coverage);
// "3 paired runs (data orders); intervals over questions and runs, 95 %"
std::string interval_note(const EffectCurve& curve, double coverage);

// 512, 4K, 32K.
std::string budget_name(uint64_t tokens);

}  // namespace ropd::stats
