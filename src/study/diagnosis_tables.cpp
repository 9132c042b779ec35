#include "study/diagnosis_tables.h"

#include <algorithm>

#include "diagnostics/fit_and_shift.h"
#include "diagnostics/prefixes.h"
#include "diagnostics/probes.h"
#include "stats/answer_metrics.h"
#include "study/tables.h"

namespace ropd::study {
namespace {

constexpr double kPercent = 100;

template <class Value>
std::vector<double> over_runs(const std::vector<const DiagnosisCell*>& cells, Value value) {
  std::vector<double> values;
  for (const DiagnosisCell* cell : cells) values.push_back(value(*cell));
  return values;
}

stats::Table kl_table(const Results& results, size_t d) {
  const DiagnosisConfig& diagnosis = results.study().diagnoses[d];
  stats::Table table{.id = diagnosis.name + "-kl",
                     .caption = diagnosis.name + ": KL(student || teacher) in nats; columns: whose prefixes",
                     .columns = {"student"}};
  for (const StateConfig& source : diagnosis.sources) {
    table.columns.push_back(source.name);
    table.columns.push_back("paper");
  }
  for (size_t i = 0; i < diagnosis.students.size(); ++i) {
    auto& cells = table.rows.emplace_back().cells;
    cells.push_back(stats::text_cell(diagnosis.students[i].name));
    for (size_t j = 0; j < diagnosis.sources.size(); ++j) {
      cells.push_back(spread_cell(
          over_runs(results.cells(d, i, j), [](const DiagnosisCell& cell) { return cell.kl; }), 4));
      cells.push_back(paper_cell(diagnosis.students[i].paper, j, 3));
    }
  }
  return table;
}

// Change of the log-likelihood at which this share of the prefixes lies below.
double change_at(const DiagnosisCell& cell, double share) {
  for (const auto& [change, below] : cell.cumulative)
    if (below >= share) return change;
  return cell.cumulative.empty() ? 0 : cell.cumulative.back().first;
}

stats::Table likelihood_table(const Results& results, size_t d) {
  const DiagnosisConfig& diagnosis = results.study().diagnoses[d];
  stats::Table table{
      .id = diagnosis.name + "-likelihood",
      .caption = diagnosis.name + ": log-likelihood of prefixes against " + diagnosis.students[0].name +
                 ": share that became less likely (%), and the change at 10, 50 and 90 % of them (nats)",
      .columns = {"student", "prefixes of", "less likely", "10 %", "50 %", "90 %"},
      .num_label_columns = 2};
  for (size_t i = 1; i < diagnosis.students.size(); ++i)
    for (size_t j = 0; j < diagnosis.sources.size(); ++j) {
      const auto cells = results.cells(d, i, j);
      auto& row = table.rows.emplace_back().cells;
      row = {
          stats::text_cell(diagnosis.students[i].name), stats::text_cell(diagnosis.sources[j].name),
          spread_cell(over_runs(cells, [](const DiagnosisCell& c) { return kPercent * c.less_likely; }), 2)};
      for (const double share : {0.1, 0.5, 0.9})
        row.push_back(
            spread_cell(over_runs(cells, [&](const DiagnosisCell& c) { return change_at(c, share); }), 2));
    }
  return table;
}

stats::Table fit_table(const Results& results, size_t d) {
  const DiagnosisConfig& diagnosis = results.study().diagnoses[d];
  stats::Table table{.id = diagnosis.name + "-fit-and-shift",
                     .caption = diagnosis.name + ": decrease of KL on a student's own states = fit + shift",
                     .columns = {"from", "to", "change", "fit", "shift"},
                     .num_label_columns = 2};
  std::vector<std::optional<size_t>> own(diagnosis.students.size());
  size_t places = SIZE_MAX;
  for (size_t i = 0; i < diagnosis.students.size(); ++i)
    for (size_t j = 0; j < diagnosis.sources.size(); ++j) {
      if (diagnosis.students[i].name == diagnosis.sources[j].name) own[i] = j;
      places = std::min(places, results.cells(d, i, j).size());
    }
  struct Values {
    std::vector<double> change, fit, shift;
  };
  std::map<std::pair<size_t, size_t>, Values> pairs;
  for (size_t place = 0; place < places; ++place) {
    std::vector<std::vector<double>> kl(diagnosis.students.size());
    for (size_t i = 0; i < kl.size(); ++i)
      for (size_t j = 0; j < diagnosis.sources.size(); ++j)
        kl[i].push_back(results.cells(d, i, j)[place]->kl);
    for (const auto& pair : diagnostics::fit_and_shift(kl, own)) {
      Values& values = pairs[{pair.from, pair.to}];
      values.change.push_back(pair.change);
      values.fit.push_back(pair.fit);
      values.shift.push_back(pair.shift);
    }
  }
  for (const auto& [pair, values] : pairs)
    table.rows.push_back(
        {{stats::text_cell(diagnosis.students[pair.first].name),
          stats::text_cell(diagnosis.students[pair.second].name), spread_cell(values.change, 4),
          spread_cell(values.fit, 4), spread_cell(values.shift, 4)}});
  return table;
}

stats::Table concentration_table(const Results& results, size_t d) {
  const DiagnosisConfig& diagnosis = results.study().diagnoses[d];
  stats::Table table{
      .id = diagnosis.name + "-concentration",
      .caption =
          diagnosis.name + ": where the KL difference of two students lies, positions ranked by a third",
      .columns = {"positions of, ranked by: first, second", "top tenth, first", "second", "rest, first",
                  "second", "% in top tenth", "% positions first lower", "% responses first lower"}};
  for (const ConcentrationConfig& asked : diagnosis.concentrations) {
    const size_t j = index_of(diagnosis.sources, asked.source);
    const auto of = [&](const std::string& name) {
      return results.cells(d, index_of(diagnosis.students, name), j);
    };
    const auto ranking = of(asked.ranked_by), first = of(asked.first), second = of(asked.second);
    std::vector<std::vector<double>> columns(7);
    for (size_t place = 0; place < std::min({ranking.size(), first.size(), second.size()}); ++place) {
      const auto c = diagnostics::concentration(ranking[place]->position_kl, first[place]->position_kl,
                                                second[place]->position_kl);
      const double values[] = {c.top_first,
                               c.top_second,
                               c.rest_first,
                               c.rest_second,
                               kPercent * c.top_share,
                               kPercent * c.positions_first_lower,
                               kPercent * c.responses_first_lower};
      for (size_t i = 0; i < columns.size(); ++i) columns[i].push_back(values[i]);
    }
    auto& here = table.rows.emplace_back().cells;
    here.push_back(
        stats::text_cell(asked.source + ", " + asked.ranked_by + ": " + asked.first + ", " + asked.second));
    for (size_t i = 0; i < columns.size(); ++i) here.push_back(spread_cell(columns[i], i < 4 ? 4 : 1));
    auto& paper = table.rows.emplace_back().cells;
    paper.push_back(stats::text_cell("  paper"));
    for (size_t i = 0; i < columns.size(); ++i) paper.push_back(paper_cell(asked.paper, i, i < 4 ? 4 : 1));
  }
  return table;
}

stats::Table gradient_table(const Results& results, size_t d) {
  const DiagnosisConfig& diagnosis = results.study().diagnoses[d];
  stats::Table table{
      .id = diagnosis.name + "-gradients",
      .caption = diagnosis.name +
                 ": gradient norms with the deviation over minibatches, and the cosine with "
                 "the gradient on the student's own responses (standard error); means over runs",
      .columns = {"student", "responses of", "norm", "SD", "cosine", "SE"},
      .num_label_columns = 2};
  for (size_t i = 0; i < diagnosis.students.size(); ++i)
    for (size_t j = 0; j < diagnosis.sources.size(); ++j) {
      const auto own = source_of_own(diagnosis, diagnosis.students[i].name);
      const auto cells = results.cells(d, i, j);
      std::vector<double> norms, deviations, cosines, errors;
      for (size_t place = 0; place < cells.size(); ++place) {
        const auto norm = stats::mean_and_deviation(cells[place]->norms);
        norms.push_back(norm.mean);
        deviations.push_back(norm.deviation);
        if (!own || *own == j) continue;
        const auto own_cells = results.cells(d, i, *own);
        if (place >= own_cells.size()) continue;
        const auto cosine = diagnostics::paired_cosine(
            {.norms = own_cells[place]->norms, .coordinates = own_cells[place]->coordinates},
            {.norms = cells[place]->norms, .coordinates = cells[place]->coordinates});
        cosines.push_back(cosine.mean);
        errors.push_back(cosine.standard_error);
      }
      table.rows.push_back({{stats::text_cell(diagnosis.students[i].name),
                             stats::text_cell(diagnosis.sources[j].name), spread_cell(norms, 3),
                             spread_cell(deviations, 3), spread_cell(cosines, 3), spread_cell(errors, 3)}});
    }
  return table;
}

}  // namespace

std::vector<stats::Table> diagnosis_tables(const Results& results, size_t diagnosis) {
  const DiagnosisConfig& config = results.study().diagnoses[diagnosis];
  std::vector<stats::Table> tables = {kl_table(results, diagnosis), likelihood_table(results, diagnosis)};
  if (auto fit = fit_table(results, diagnosis); !fit.rows.empty()) tables.push_back(std::move(fit));
  if (!config.concentrations.empty()) tables.push_back(concentration_table(results, diagnosis));
  if (config.probes) tables.push_back(gradient_table(results, diagnosis));
  return tables;
}

}  // namespace ropd::study
