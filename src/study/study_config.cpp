#include "study/study_config.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "stats/measures.h"

namespace ropd::study {
namespace {

template <class Item>
void check_names(const std::vector<Item>& items, const char* what, const ConfigPlace& place) {
  std::set<std::string> seen;
  for (const Item& item : items) {
    if (item.name.empty()) place.refuse({what}, ": an entry has no name");
    if (!seen.insert(item.name).second) place.refuse({what}, ": \"", item.name, "\" is there twice");
  }
}

void check_cycles(const StudyConfig& config, const ConfigPlace& place) {
  for (const Method& method : config.methods) {
    std::string trail = method.name;
    std::set<std::string> seen = {method.name};
    const Method* at = &method;
    while (at->from) {
      const std::string next = at->from->method;
      trail += " -> " + next;
      if (!seen.insert(next).second) place.refuse({"methods"}, ": `from` goes round in a circle: ", trail);
      at = &config.methods[find_method(config, next, "methods: " + at->name + ".from")];
    }
  }
}

std::vector<std::vector<size_t>> combinations(const std::vector<Axis>& axes) {
  std::vector<std::vector<size_t>> result(1);
  for (const Axis& axis : axes) {
    std::vector<std::vector<size_t>> longer;
    for (const auto& chosen : result)
      for (size_t v = 0; v < axis.values.size(); ++v) {
        longer.push_back(chosen);
        longer.back().push_back(v);
      }
    result = std::move(longer);
  }
  return result;
}

Run make_run(const StudyFile& file, size_t method_index, const std::vector<size_t>& chosen) {
  const StudyConfig& study = file.config;
  const Method& method = study.methods[method_index];
  Run run{.method = method_index};
  run.label = method.name;
  std::vector<std::string> overrides = study.set;
  for (size_t a = 0; a < chosen.size(); ++a) {
    const AxisValue& value = study.axes[a].values[chosen[a]];
    overrides.insert(overrides.end(), value.set.begin(), value.set.end());
    run.values.push_back(value.name);
    run.label += ", " + study.axes[a].name + " " + value.name;
  }
  overrides.insert(overrides.end(), method.set.begin(), method.set.end());
  if (!method.stages.empty())
    overrides.push_back("curriculum.stages=" + write_value(config_detail::to_node(method.stages)));
  overrides.push_back("output=" + study.output);
  if (method.from) overrides.push_back("continue_from=" + method.from->method);  // known when it is trained
  const Path base = file.path.parent_path() / study.base;
  try {
    run.config = train::load_train_config(base, overrides);
  } catch (const Error& error) {
    fail(file.path.string(), ": ", run.label, ": ", error.what());
  }
  return run;
}

// The item of this name; refuses what is not there with the nearest one.
template <class Item>
const Item& named(const std::vector<Item>& items, const std::string& name, const char* key,
                  const std::string& what, const ConfigPlace& place) {
  std::vector<std::string> names;
  for (const Item& item : items) {
    if (item.name == name) return item;
    names.push_back(item.name);
  }
  const std::string nearest = nearest_name(name, names);
  place.refuse({key}, ": ", what, " \"", name, "\"",
               nearest.empty() ? " is not in this study" : " (did you mean \"" + nearest + "\"?)");
}

void check_diagnosis(const StudyConfig& study, const DiagnosisConfig& diagnosis, const ConfigPlace& place) {
  if (diagnosis.sources.empty() || diagnosis.students.empty())
    place.refuse({"diagnoses"}, ": ", diagnosis.name, " needs at least one source and one student");
  check_names(diagnosis.sources, "diagnoses", place);
  check_names(diagnosis.students, "diagnoses", place);
  for (const auto* states : {&diagnosis.sources, &diagnosis.students})
    for (const StateConfig& state : *states)
      if (!state.method.empty())
        (void)named(study.methods, state.method, "diagnoses", diagnosis.name + ": no method", place);
  for (const StateConfig& student : diagnosis.students)
    if (student.paper.size() > diagnosis.sources.size())
      place.refuse({"diagnoses"}, ": ", diagnosis.name, ": ", student.name, " has ", student.paper.size(),
                   " numbers of the paper for ", diagnosis.sources.size(), " sources");
  for (const ConcentrationConfig& concentration : diagnosis.concentrations) {
    (void)named(diagnosis.sources, concentration.source, "diagnoses", diagnosis.name + ": no source", place);
    for (const std::string& student : {concentration.ranked_by, concentration.first, concentration.second})
      (void)named(diagnosis.students, student, "diagnoses", diagnosis.name + ": no student", place);
  }
}

// A side of a comparison of diagnoses.
void check_side(const DiagnosisConfig& diagnosis, const std::string& text, const std::string& label,
                const ConfigPlace& place) {
  const DiagnosisSide side = parse_diagnosis_side(text);
  (void)named(diagnosis.students, side.student, "comparisons", label + ": no student", place);
  (void)named(diagnosis.sources, side.source, "comparisons", label + ": no source", place);
}

void check_comparison(const StudyConfig& study, const ComparisonConfig& comparison,
                      const ConfigPlace& place) {
  const auto refuse = [&](const std::string& text) {
    place.refuse({"comparisons"}, ": ", comparison.label, ": ", text);
  };
  if (comparison.evaluation.empty() == comparison.diagnosis.empty())
    refuse("expected either an evaluation or a diagnosis");
  if (comparison.at.has_value() != comparison.minus.has_value())
    refuse("an interaction needs both at and minus");
  if (comparison.better.empty() || comparison.worse.empty() != comparison.against.has_value())
    refuse("expected better, and either worse or against");
  if (!comparison.evaluation.empty()) {
    (void)named(study.evaluations, comparison.evaluation, "comparisons", comparison.label + ": no evaluation",
                place);
    if (!comparison.measure.empty()) (void)stats::parse_measure(comparison.measure);
    return;
  }
  const auto& diagnosis =
      named(study.diagnoses, comparison.diagnosis, "comparisons", comparison.label + ": no diagnosis", place);
  const std::string& measure = comparison.measure;
  if (!measure.empty() && measure != "kl" && measure != "less_likely" && measure != "norm" &&
      measure != "cosine")
    refuse("measure \"" + measure + "\" of a diagnosis, expected kl, less_likely, norm or cosine");
  if ((measure == "norm" || measure == "cosine") && !diagnosis.probes)
    refuse("diagnosis " + diagnosis.name + " has no probes");
  if (comparison.at) refuse("interactions are of evaluations");
  check_side(diagnosis, comparison.better, comparison.label, place);
  if (!comparison.worse.empty()) check_side(diagnosis, comparison.worse, comparison.label, place);
  const std::string student = parse_diagnosis_side(comparison.better).student;
  if (measure == "cosine" && !source_of_own(diagnosis, student))
    refuse("no source " + student + ": a cosine is taken with the gradient on a student's own responses");
}

void check_table(const StudyConfig& study, const TableConfig& table, const ConfigPlace& place) {
  (void)named(study.evaluations, table.evaluation, "tables", table.label + ": no evaluation", place);
  if (table.columns.empty() || table.rows.empty())
    place.refuse({"tables"}, ": ", table.label, " needs at least one column and one row");
  for (const std::string& text : table.columns)
    if (const Column column = parse_column(text); column.measure != "tau")
      (void)stats::parse_measure(column.measure);
  for (const TableRowConfig& row : table.rows)
    if (row.paper.size() > table.columns.size())
      place.refuse({"tables"}, ": ", table.label, ": ", row.of, " has ", row.paper.size(),
                   " numbers of the paper for ", table.columns.size(), " columns");
}

// Rows that tables and comparisons name.
void check_rows(const StudyFile& file, const std::vector<Run>& runs) {
  const auto check = [&](const std::string& label, const std::string& name) {
    if (name.empty() || find_row(file.config, runs, name)) return;
    std::vector<std::string> names;
    for (const Row& row : rows_of(file.config, runs)) names.push_back(row.name);
    const std::string nearest = nearest_name(name, names);
    fail(file.path.string(), ": ", label, ": no row \"", name, "\"",
         nearest.empty() ? ", rows are methods with @ and a value of every axis that does not repeat"
                         : " (did you mean \"" + nearest + "\"?)");
  };
  for (const TableConfig& table : file.config.tables)
    for (const TableRowConfig& row : table.rows) check(table.label, row.of);
  for (const ComparisonConfig& comparison : file.config.comparisons)
    if (!comparison.evaluation.empty())
      for (const std::string& side :
           {comparison.better, comparison.worse, comparison.at.value_or(""), comparison.minus.value_or("")})
        check(comparison.label, side);
}

}  // namespace

Column parse_column(const std::string& text) {
  const size_t at = text.rfind('@');
  if (at == std::string::npos || text.substr(0, at) == "pass") return {text, std::nullopt};
  const std::string budget = text.substr(at + 1);
  if (budget.empty() || budget.size() > 9 || budget.find_first_not_of("0123456789") != std::string::npos)
    fail("column \"", text, "\": \"", budget, "\" is no budget, expected a number of tokens");
  return {text.substr(0, at), std::stoull(budget)};
}

std::string column_text(const Column& column) {
  return column.budget ? column.measure + "@" + std::to_string(*column.budget) : column.measure;
}

DiagnosisSide parse_diagnosis_side(const std::string& text) {
  const size_t at = text.rfind(" on ");
  if (at == std::string::npos || at == 0 || at + 4 == text.size())
    fail("\"", text, "\" of a comparison of diagnoses, expected STUDENT on SOURCE");
  return {text.substr(0, at), text.substr(at + 4)};
}

std::optional<size_t> source_of_own(const DiagnosisConfig& diagnosis, const std::string& student) {
  for (size_t j = 0; j < diagnosis.sources.size(); ++j)
    if (diagnosis.sources[j].name == student) return j;
  return std::nullopt;
}

std::vector<Row> rows_of(const StudyConfig& config, const std::vector<Run>& runs) {
  std::vector<Row> rows;
  for (size_t r = 0; r < runs.size(); ++r) {
    std::string name = config.methods[runs[r].method].name;
    for (size_t a = 0; a < config.axes.size(); ++a)
      if (!config.axes[a].repeats) name += "@" + runs[r].values[a];
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const Row& known) { return known.name == name; });
    if (row == rows.end())
      rows.push_back({name, {r}});
    else
      row->runs.push_back(r);
  }
  return rows;
}

std::optional<Row> find_row(const StudyConfig& config, const std::vector<Run>& runs,
                            const std::string& name) {
  for (const Row& row : rows_of(config, runs))
    if (row.name == name) return row;
  for (size_t r = 0; r < runs.size(); ++r)
    if (runs[r].label == name) return Row{name, {r}};
  return std::nullopt;
}

size_t find_method(const StudyConfig& config, const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (size_t i = 0; i < config.methods.size(); ++i) {
    if (config.methods[i].name == name) return i;
    names.push_back(config.methods[i].name);
  }
  const std::string nearest = nearest_name(name, names);
  fail(where, ": no method \"", name, "\"",
       nearest.empty() ? " in this study" : " (did you mean \"" + nearest + "\"?)");
}

void StudyConfig::validate(const ConfigPlace& place) const {
  for (const auto& [key, value] : {std::pair{"name", &name}, {"base", &base}, {"output", &output}})
    if (value->empty()) place.refuse({key}, " is required, but not given");
  if (methods.empty()) place.refuse({"methods"}, " is empty; expected at least one, e.g. {name: current}");
  check_names(methods, "methods", place);
  check_names(axes, "axes", place);
  check_names(evaluations, "evaluations", place);
  check_names(diagnoses, "diagnoses", place);
  for (const Axis& axis : axes) {
    if (axis.values.empty()) place.refuse({"axes"}, ": axis \"", axis.name, "\" has no values");
    check_names(axis.values, "axes", place);
  }
  const std::string where = place.where("");
  const auto prefix = [&](const std::string& text) { return where.empty() ? text : where + ": " + text; };
  check_cycles(*this, place);
  for (const EvaluationConfig& evaluation : evaluations) {
    if (evaluation.suite.empty())
      place.refuse({"evaluations"}, ": ", evaluation.name, " has no suite (eight, three or a YAML file)");
    for (const std::string& method : evaluation.methods)
      (void)find_method(*this, method, prefix("evaluations: " + evaluation.name));
  }
  for (const DiagnosisConfig& diagnosis : diagnoses) check_diagnosis(*this, diagnosis, place);
  for (const TableConfig& table : tables) check_table(*this, table, place);
  for (const ComparisonConfig& comparison : comparisons) check_comparison(*this, comparison, place);
}

StudyFile load_study(const Path& path, const std::vector<std::string>& overrides) {
  StudyFile file{.config = load_config<StudyConfig>(path, overrides), .path = path};
  const Path base = path.parent_path() / file.config.base;
  if (!std::filesystem::exists(base))
    fail(path.string(), ": base ", base.string(), " does not exist (it is looked for beside the study file)");
  return file;
}

std::vector<Run> expand_runs(const StudyFile& file) {
  const auto places = combinations(file.config.axes);
  std::vector<Run> runs;
  for (size_t m = 0; m < file.config.methods.size(); ++m)
    for (const auto& chosen : places) runs.push_back(make_run(file, m, chosen));
  for (Run& run : runs) {
    const auto& from = file.config.methods[run.method].from;
    if (!from) continue;
    const size_t parent = find_method(file.config, from->method, file.path.string());
    for (size_t i = 0; i < runs.size(); ++i)
      if (runs[i].method == parent && runs[i].values == run.values) run.from = i;
    const uint64_t last = runs[*run.from].config.train.iterations;
    if (from->iteration > last)
      fail(file.path.string(), ": ", run.label, ": continues ", from->method, " behind iteration ",
           from->iteration, ", which has ", last);
  }
  check_rows(file, runs);
  return runs;
}

train::TrainConfig prompts_of(const Run& run, const DiagnosisConfig& diagnosis) {
  train::TrainConfig config = run.config;
  if (!diagnosis.set.empty())
    config = train::parse_train_config(config_to_yaml(config), "diagnosis " + diagnosis.name, diagnosis.set);
  config.continue_from.reset();  // prompts do not depend on it
  return config;
}

}  // namespace ropd::study
