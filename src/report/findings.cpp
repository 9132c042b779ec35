#include "report/findings.h"

#include <algorithm>
#include <cmath>

#include "report/html.h"
#include "report/tables.h"

namespace ropd::report {
namespace {

using stats::budget_name;

std::string interval_text(const stats::Interval& interval, double scale, int decimals) {
  return format_number(scale * interval.low, decimals) + " to " +
         format_number(scale * interval.high, decimals);
}

// "3.4 points more than current (95 % interval 1.7 to 5.1)", or "not distinguishable from ..."
std::string difference_text(const stats::Effect& effect, const std::string& other, double scale,
                            const std::string& unit, int decimals) {
  const double size = scale * effect.interval.estimate;
  const bool is_certain = effect.interval.low > 0 || effect.interval.high < 0;
  const std::string amount = format_number(std::fabs(size), decimals) + " " + unit +
                             (size < 0 ? " less" : " more") + " than " + other;
  return amount + " (95 % interval " + interval_text(effect.interval, scale, decimals) + ")" +
         (is_certain ? "" : ", which may be chance");
}

std::string accuracy_sentence(const stats::EffectCurve& curve, const Spread& left,
                              const std::string& left_label, const std::string& right_label) {
  const size_t last = curve.budgets.size() - 1;
  const stats::Effect& at_long = curve.effects[last].mean;
  std::string text = "At " + budget_name(curve.budgets[last]) + " tokens " + left_label + " is right in " +
                     format_number(100 * left.mean, 1) + " %, " +
                     difference_text(at_long, right_label, 100, "points", 1) + ".";
  if (last == 0) return text;
  const stats::Effect& at_short = curve.effects[0].mean;
  if (at_long.interval.estimate * at_short.interval.estimate < 0)
    text += " At " + budget_name(curve.budgets[0]) +
            " tokens it is the other way round: " + difference_text(at_short, right_label, 100, "points", 1) +
            ".";
  return text;
}

void add_trigger_sentences(std::vector<std::string>& sentences, const Comparison& comparison) {
  for (const Method& method : comparison.methods) {
    const std::string tau = tau_text(method);
    if (tau == "–") continue;
    size_t num_ratios = 0, num_below = 0;
    for (const RunData* run : method.runs)
      for (const IterationRecord& record : run->iterations)
        if (record.trigger.ratio) {
          ++num_ratios;
          num_below += *record.trigger.ratio <= 1;
        }
    const bool is_set = std::any_of(method.runs.begin(), method.runs.end(),
                                    [](const RunData* run) { return run->tau().has_value(); });
    std::string text =
        "The trigger of " + method.label + (is_set ? " was set at iteration " + tau : " was not set");
    text += method.runs.size() > 1 ? " in its " + std::to_string(method.runs.size()) + " runs" : "";
    if (num_ratios > 0)
      text += "; " + std::to_string(num_below) + " of " + std::to_string(num_ratios) +
              " comparisons had D ≤ V (without any movement D = V on average)";
    sentences.push_back(text + ".");
  }
}

void add_compute_sentences(std::vector<std::string>& sentences, const Comparison& comparison) {
  for (const Method& method : comparison.methods) {
    double trajectories = 0, sampled = 0, saved = 0, seconds = 0;
    for (const RunData* run : method.runs) {
      if (!run->is_trained()) continue;
      const Compute compute = compute_of(run->iterations);
      trajectories += compute.trajectories;
      sampled += compute.sampled;
      saved += compute.seconds_saved;
      seconds += compute.seconds();
    }
    if (trajectories == 0 || sampled >= trajectories || sampled == 0) continue;
    std::string text = method.label + " sampled " + format_number(100 * sampled / trajectories, 0) +
                       " % of the trajectories it trained on and replayed the rest";
    if (std::isfinite(saved) && saved > 0 && seconds > 0)
      text += "; that saved about " + format_number(100 * saved / (saved + seconds), 0) + " % of the time";
    sentences.push_back(text + ".");
  }
}

void add_prefix_sentence(std::vector<std::string>& sentences, const Comparison& comparison) {
  std::string text;
  for (const Method& method : comparison.methods) {
    std::vector<double> values;
    for (const RunData* run : method.runs)
      if (run->prefixes && run->prefixes->kl) values.push_back(*run->prefixes->kl);
    if (!values.empty())
      text += (text.empty() ? "" : ", ") + method.label + " " + format_number(spread(values).mean, 3);
  }
  if (!text.empty())
    sentences.push_back("KL to the teacher on the initial student's prefixes, in nats: " + text + ".");
}

}  // namespace

Analysis analyse(const Comparison& comparison, const ResultSet& set, const stats::BootstrapConfig& config) {
  Analysis analysis;
  std::vector<stats::Method> methods;  // trained ones, then the first reference
  std::vector<size_t> indices;
  size_t num_trained = 0;
  for (const bool is_reference : {false, true})
    for (size_t m = 0; m < set.methods.size(); ++m) {
      const MethodResult& result = set.methods[m];
      if (!result.is_present() || comparison.methods[m].is_reference != is_reference) continue;
      if (is_reference && methods.size() > num_trained) break;
      stats::Method method{.label = comparison.methods[m].label, .runs = {}, .orders = result.orders};
      for (const stats::EvaluationSummary* run : result.runs) method.runs.push_back(*run);
      methods.push_back(std::move(method));
      indices.push_back(m);
      num_trained += !is_reference;
    }
  if (methods.size() < 2 || num_trained == 0) return analysis;
  stats::align_orders(methods);
  analysis.warnings = stats::check_comparable(methods);
  std::vector<uint32_t> budgets = methods.front().runs.front().budgets;
  for (const stats::Method& method : methods)
    for (const auto& run : method.runs)
      std::erase_if(budgets, [&](uint32_t budget) { return !run.has_budget(budget); });
  if (budgets.empty()) return analysis;
  std::vector<stats::Question> questions;
  const auto ask = [&](size_t left, size_t right) {
    questions.push_back(stats::difference_of(methods, left, right));
    analysis.sides.emplace_back(indices[left], indices[right]);
  };
  for (size_t i = 1; i < num_trained; ++i) ask(i, 0);
  if (methods.size() > num_trained) ask(0, num_trained);
  const stats::Measure accuracy[] = {{}}, length[] = {{stats::Measure::Kind::length}};
  analysis.accuracy = stats::answer(methods, questions, accuracy, budgets, config);
  analysis.length = stats::answer(methods, questions, length, budgets, config);
  return analysis;
}

std::vector<std::string> findings(const Comparison& comparison, const std::vector<Analysis>& analyses,
                                  const stats::BootstrapConfig& config) {
  std::vector<std::string> sentences;
  size_t num_comparisons = 0;
  for (size_t s = 0; s < analyses.size(); ++s) {
    const Analysis& analysis = analyses[s];
    const ResultSet& set = comparison.results[s];
    for (size_t i = 0; i < analysis.accuracy.size(); ++i) {
      const stats::EffectCurve& curve = analysis.accuracy[i];
      const auto [left, right] = analysis.sides[i];
      const std::string &left_label = comparison.methods[left].label,
                        &right_label = comparison.methods[right].label;
      std::string text = analyses.size() > 1 ? "On " + set.name + ": " : "";
      text +=
          accuracy_sentence(curve, set.methods[left].at({}, curve.budgets.back()), left_label, right_label);
      const stats::Effect& length = analysis.length[i].effects.back().mean;
      if (length.interval.low > 0 || length.interval.high < 0)
        text += " Its responses have " + difference_text(length, right_label, 1, "tokens", 0) + ".";
      sentences.push_back(text);
      num_comparisons += 2;
    }
    if (!analysis.accuracy.empty())
      sentences.push_back(stats::interval_note(analysis.accuracy.front(), config.coverage) +
                          (num_comparisons > 2
                               ? " " + std::to_string(num_comparisons) +
                                     " comparisons were made for these sentences; about one in twenty "
                                     "would seem certain by chance alone."
                               : ""));
  }
  add_trigger_sentences(sentences, comparison);
  add_compute_sentences(sentences, comparison);
  add_prefix_sentence(sentences, comparison);
  return sentences;
}

}  // namespace ropd::report
